"""A trading status as an archive takes it from the status log. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class LoggedStatus:
    """An entry of the status log: the status, and the newest trade before it.

    ``offset`` is its number in its ``epoch``, ``published_us`` when it was taken.
    ``body`` and ``trade`` are JSON as logged, ``trade`` empty where nobody knows it.
    """

    epoch: str
    offset: int
    published_us: int
    body: bytes
    trade: bytes

    @classmethod
    def of_entry(cls, entry_id: bytes, fields: Mapping[bytes, bytes]) -> "LoggedStatus":
        """Decode an entry. Raises ValueError for what nobody of ours has written.

        A word or a field that a newer version writes is no fault.
        """
        where = f"status log: entry {entry_id!r}"
        try:
            number = int(entry_id.partition(b"-")[0])
            epoch, taken_us = fields[b"epoch"].decode(), int(fields[b"taken"])
            body: Any = orjson.loads(fields[b"status"])
            trade = fields.get(b"last", b"")
            named = {type(body["isin"]), type(body["status"])}, type(body["time"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{where}: {error!r}") from None
        if named != ({str}, int):
            raise ValueError(f"{where}: has no isin, status and time of a status")
        return cls(epoch, number, taken_us, fields[b"status"], trade)

    @property
    def first_ms(self) -> int:
        """The end of the millisecond in which it was taken, as ``last_ms``."""
        return self.published_us // 1_000 + 1

    last_ms = first_ms

    @property
    def size_bytes(self) -> int:
        """How long it is, roughly."""
        return len(self.body) + len(self.trade)
