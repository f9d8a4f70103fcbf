"""What the bar log holds: every bar that was closed or amended, in order. Pure.

This module is a contract: the analytics job writes the log, the archive reads it. An
entry holds what a batch has closed or amended of one day; entries are numbered without
holes, so whoever reads them knows what is missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from throttle.contract.bars import Bar

_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class BarLogEntry:
    """An entry: the ``number``-th of its ``epoch``, and bars of one day.

    ``lines`` has one bar a line: its ISIN, a space, and ``Bar.encode``. Of a bar that
    comes again, the one of the greater edition is the newer one.
    """

    epoch: str
    number: int
    published_us: int
    lines: bytes

    @classmethod
    def decode(cls, fields: Mapping[bytes, bytes]) -> "BarLogEntry":
        """Decode an entry of the stream ``AnalyticsKeys.bar_log``. Raises ValueError.

        Its bars are not looked at.
        """
        try:
            return cls(
                fields[b"epoch"].decode(),
                int(fields[b"number"]),
                int(fields[b"published"]),
                fields[b"bars"],
            )
        except KeyError as error:
            raise ValueError(f"bar log: an entry has no field {error}") from None

    def bars(self) -> list[Bar]:
        """Return its bars. Raises ValueError."""
        pairs = (line.partition(b" ")[::2] for line in self.lines.split(b"\n"))
        return [Bar.decode(isin.decode(), line) for isin, line in pairs]


def entries_of(bars: Iterable[Bar]) -> Sequence[bytes]:
    """Return the lines of each entry for bars that a batch has closed or amended.

    One entry a day (UTC, in which the bar ends), the earliest day first; none for none.
    """
    days: dict[int, list[bytes]] = {}
    for bar in bars:
        line = b"%b %b" % (bar.isin.encode(), bar.encode())
        # A bar that ends at midnight is of the day before.
        days.setdefault((bar.end_ms - 1) // _DAY_MS, []).append(line)
    return [b"\n".join(days[day]) for day in sorted(days)]
