"""The trading statuses of the instruments that are followed. Pure."""

from collections.abc import Callable
from typing import Any, TypeAlias

from tickthrottle_client.tick_v1 import read_decimal

InstrumentStatus: TypeAlias = dict[str, Any]
"""A status of an instrument: ``status``, such as ``halted``, and ``time``, when the
exchange said it, microseconds since 1970; maybe ``venue``, ``until``, ``reason``.

Prices and sizes are Decimal. ``last`` is the newest trade that the log held before it,
where that is known. ``missed`` is how many statuses are missing before this one: 0 but
where the reader was too slow, None where nobody knows.
"""

BANDS = "price_bands"
_DECIMALS = ("expected_price", "expected_size", "lower", "upper")


def read_status(entry: InstrumentStatus) -> None:
    """Turn decimals of a status into Decimal. Raises any Exception for a bad one."""
    for name in _DECIMALS:
        if name in entry:
            entry[name] = read_decimal(entry[name])
    if "last" in entry:
        entry["last"]["price"] = read_decimal(entry["last"]["price"])
    if {type(entry["time"]), type(entry["number"])} != {int}:
        raise ValueError("a status must have a time and a number")


class StatusBook(dict[str, list[InstrumentStatus]]):
    """The current statuses of each instrument: one of each venue and kind.

    ``position`` is that of the newest status there was, None before the first.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[str, str, bool], tuple[int, int]] = {}
        self._epoch: str | None = None
        self._missed: int | None = 0
        self._missed_before: int | None = 0
        self.position: dict[str, Any] | None = None

    def begin(self) -> None:
        """Take in that a connection begins: what is current will be told."""
        # The first connection misses nothing; what another one does a gateway may say.
        self._missed_before = self._missed
        self._missed = None if self._epoch is not None else 0
        self.clear()

    def take(self, message: dict[str, Any]) -> list[InstrumentStatus]:
        """Take a message in; return the statuses that are news, in order."""
        if message["epoch"] != self._epoch:
            self._epoch = message["epoch"]
            self._told.clear()
            self.position = None
        if message["snapshot"]:
            self.clear()
        if message.get("resumed"):
            self._missed = self._missed_before
        if message["missed"] is None or self._missed is None:
            self._missed = None
        else:
            self._missed += message["missed"]
        return [
            entry
            for entry in message["entries"]
            if self._put(entry, is_known=message["snapshot"])
        ]

    def forget(self, is_watched: Callable[[str], bool]) -> None:
        """Keep the instruments alone that are watched still."""
        for isin in [isin for isin in self if not is_watched(isin)]:
            del self[isin]

    def _put(self, entry: InstrumentStatus, *, is_known: bool) -> bool:
        newest = 0 if self.position is None else self.position["number"]
        number = max(newest, entry["number"])
        self.position = {"epoch": self._epoch, "number": number}
        slot, order = _slot_of(entry), _order(entry)
        held = self.get(entry["isin"], [])
        others = [one for one in held if _slot_of(one) != slot]
        # A gateway that is behind the one before says what is current there.
        if all(_order(one) <= order for one in held if one not in others):
            self[entry["isin"]] = [*others, entry]
        before = self._told.get(slot, (0, 0))
        self._told[slot] = max(before, order)
        if is_known and order <= before:
            return False
        entry["missed"], self._missed = self._missed, 0
        return True


def _order(entry: InstrumentStatus) -> tuple[int, int]:
    return entry["time"], entry["number"]


def _slot_of(entry: InstrumentStatus) -> tuple[str, str, bool]:
    return entry["isin"], entry.get("venue", ""), entry["status"] == BANDS
