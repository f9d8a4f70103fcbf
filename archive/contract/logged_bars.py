"""Bars as the archive takes them from the bar log. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from archive.contract.segment import day_of
from throttle.contract.products.bar_log import BarLogEntry


@dataclass(frozen=True, slots=True)
class LoggedBars:
    """An entry of the bar log: bars of one day that were closed or amended.

    ``offset`` is its number. ``lines`` has a bar each (``bar_log.py``); they end from
    ``first_ms`` to ``last_ms``.
    """

    epoch: str
    offset: int
    published_us: int
    first_ms: int
    last_ms: int
    lines: tuple[bytes, ...]

    @classmethod
    def decode(cls, fields: Mapping[bytes, bytes]) -> "LoggedBars":
        """Decode an entry. Raises ValueError for what no analytics job has written."""
        entry = BarLogEntry.decode(fields)
        lines = tuple(entry.lines.split(b"\n"))
        try:
            ends = [int(line.split(b" ", 3)[2]) for line in lines]
        except (IndexError, ValueError):
            raise ValueError(
                f"bar log: entry {entry.number} of epoch {entry.epoch}: a line is no "
                "bar of an analytics job"
            ) from None
        first, last = min(ends), max(ends)
        if day_of(first) != day_of(last):
            raise ValueError(
                f"bar log: entry {entry.number} of epoch {entry.epoch}: has bars of "
                f"{day_of(first)} and of {day_of(last)}, and may have those of one day"
            )
        place = entry.epoch, entry.number, entry.published_us
        return cls(*place, first, last, lines)

    @property
    def size_bytes(self) -> int:
        """How long its lines are, roughly."""
        return sum(map(len, self.lines))
