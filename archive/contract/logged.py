"""Windows, bars and statuses as an archive takes them from their logs, and their
segments. Pure.

Of each, ``offset`` is an entry's number in its ``epoch``; ``first_ms`` and
``last_ms`` are the earliest and the latest end of what it holds, of one day.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson

from archive.contract.segment import Segment, day_of, in_runs
from throttle.contract.products.bar_log import BarLogEntry


@dataclass(frozen=True, slots=True)
class LoggedWindow:
    """A message of the window log and what its header says.

    The message is unchanged, but without days so far, which are nothing to keep: rows
    add up to them.

    ``instruments`` is the version of the instrument table that the job used, None if
    the header does not say: then the table of ``published_us`` counts.
    """

    epoch: str
    offset: int
    window: int
    published_us: int
    instruments: int | None
    message: bytes

    @classmethod
    def decode(cls, message: bytes) -> "LoggedWindow":
        """Decode the header. Raises ValueError for what no throttle has written."""
        message = message.partition(b"\n\n")[0]
        head = message.partition(b"\n")[0]
        header = orjson.loads(head)
        try:
            instruments = header.get("instruments")
            return cls(
                str(header["epoch"]),
                int(header["offset"]),
                int(header["window"]),
                int(header["published"]),
                None if instruments is None else int(instruments),
                message,
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise ValueError(f"header {head[:200]!r}: {error!r}") from None

    @classmethod
    def of_entry(cls, _: bytes, fields: Mapping[bytes, bytes]) -> "LoggedWindow":
        """Decode an entry of the window log. Raises ValueError as ``decode`` does."""
        return cls.decode(fields.get(b"snapshot", b""))

    @property
    def first_ms(self) -> int:
        """Its end, as ``last_ms``."""
        return self.window

    last_ms = first_ms

    @property
    def size_bytes(self) -> int:
        return len(self.message)

    @property
    def lines(self) -> list[bytes]:
        return self.message.split(b"\n")[1:]


@dataclass(frozen=True, slots=True)
class LoggedBars:
    """An entry of the bar log: bars of one day that were closed or amended.

    ``lines`` has a bar each (``bar_log.py``).
    """

    epoch: str
    offset: int
    published_us: int
    first_ms: int
    last_ms: int
    lines: tuple[bytes, ...]

    @classmethod
    def of_entry(cls, _: bytes, fields: Mapping[bytes, bytes]) -> "LoggedBars":
        """Decode an entry. Raises ValueError for what no analytics job has written."""
        entry = BarLogEntry.decode(fields)
        where = f"bar log: entry {entry.number} of epoch {entry.epoch}"
        lines = tuple(entry.lines.split(b"\n"))
        try:
            ends = [int(line.split(b" ", 3)[2]) for line in lines]
        except (IndexError, ValueError):
            raise ValueError(f"{where}: a line is no bar of an analytics job") from None
        first, last = min(ends), max(ends)
        if day_of(first) != day_of(last):
            raise ValueError(
                f"{where}: has bars of {day_of(first)} and of {day_of(last)}, and may "
                "have those of one day"
            )
        return cls(entry.epoch, entry.number, entry.published_us, first, last, lines)

    @property
    def size_bytes(self) -> int:
        return sum(map(len, self.lines))


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
        return len(self.body) + len(self.trade)


Logged = LoggedWindow | LoggedBars | LoggedStatus
L = TypeVar("L", bound=Logged)


def runs_of(entries: Iterable[L]) -> Iterator[list[L]]:
    """Yield entries that follow each other, of one epoch and day."""
    return in_runs(entries, _is_next)


def segment_of(run: Sequence[Logged]) -> Segment:
    """Return the segment of entries that follow each other."""
    first, last = run[0], run[-1]
    first_ms = min(entry.first_ms for entry in run)
    last_ms = max(entry.last_ms for entry in run)
    published_ms = first.published_us // 1_000
    offsets = first.offset, last.offset
    return Segment(published_ms, *offsets, first.epoch, first_ms, last_ms)


def _is_next(before: Logged, after: Logged) -> bool:
    return (
        before.epoch == after.epoch
        and before.offset + 1 == after.offset
        and day_of(before.last_ms) == day_of(after.first_ms)
    )
