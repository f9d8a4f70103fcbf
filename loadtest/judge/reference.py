"""What was published in a run, by instrument: clients are judged by it. Pure.

Whether it was right is not said here, but by the audit, which asks ``throttle.audit``.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, pairwise
from math import isnan, nan
from typing import NamedTuple

from throttle.contract.row_sums import Amounts, RowSums

DEFAULT_WINDOW_MS = 2_000


class Published(NamedTuple):
    """A window's end, and when it was published, in milliseconds since 1970."""

    end_ms: int
    published_ms: float


class Change(NamedTuple):
    """One row of one published window.

    ``first_ms`` is when the first trade of that window that is newer than what had
    been published of the instrument before entered the log; NaN where that is not
    known.
    """

    offset: int
    time_us: int
    seq: int
    price: str
    trades: int
    first_ms: float = nan
    amounts: Amounts | None = None


class Changes:
    """The changes of one instrument in the order of their offsets, kept as columns.

    ``sums`` says for how many trades the first so many changes stand: 0, then one for
    each. Where nobody knows them, ``firsts_ms`` has NaN and ``amounts`` None. Raises
    ValueError if two have one offset, or an offset goes back.
    """

    def __init__(self, changes: Iterable[Change] = ()) -> None:
        rows = list(changes)
        for before, change in pairwise(rows):
            if change.offset <= before.offset:
                raise ValueError(
                    f"offset {change.offset}: has to be greater than "
                    f"{before.offset}, that of the change before"
                )
        self.offsets = array("q", [row.offset for row in rows])
        self.times_us = array("q", [row.time_us for row in rows])
        self.seqs = array("q", [row.seq for row in rows])
        self.trades = array("q", [row.trades for row in rows])
        self.firsts_ms = array("d", [row.first_ms for row in rows])
        self.prices = [row.price for row in rows]
        self.amounts = [row.amounts for row in rows]
        self.sums = array("q", accumulate(self.trades, initial=0))

    def __len__(self) -> int:
        return len(self.offsets)

    def place(self, offset: int) -> int:
        """Return how many changes lie at or before an offset."""
        return bisect_right(self.offsets, offset)

    def version(self, place: int) -> tuple[int, int]:
        """Return the time and the seq of a change."""
        return self.times_us[place], self.seqs[place]

    def places(self, version: tuple[int, int]) -> Iterator[int]:
        """Yield the changes that have a version: a trade, then late ones before it."""
        place = bisect_left(self.times_us, version[0])
        while place < len(self) and self.version(place) <= version:
            if self.version(place) == version:
                yield place
            place += 1

    def after_late(self, place: int) -> int:
        """Return the first change from a place on that is not one of late trades.

        Those have the version of the change before them.
        """
        while 0 < place < len(self) and self.version(place) == self.version(place - 1):
            place += 1
        return place

    def newest(self, place: int, trades: int) -> RowSums | None:
        """Return the sums of the newest changes up to a place that have so many trades.

        None if the first of them are not among these changes.
        """
        sums = RowSums(self.trades[place], self.amounts[place])
        while sums.trades < trades:
            place -= 1
            if place < 0:
                return None
            sums = sums.fold(RowSums(self.trades[place], self.amounts[place]))
        return sums

    def trades_between(self, after: int, up_to: int) -> int:
        """Return for how many trades the changes within ``(after, up_to]`` stand."""
        if up_to <= after:
            return 0
        return self.sums[self.place(up_to)] - self.sums[self.place(after)]


NO_CHANGES = Changes()


class Reference:
    """Every window of one epoch that was published in the run, and its rows.

    ``windows`` maps each offset to its window's end and when it was published;
    ``instruments`` the rows by instrument, those of windows that came merged (after an
    outage) each at its own offset. What was published before the run is not in it.
    """

    def __init__(
        self,
        epoch: str,
        windows: Mapping[int, tuple[int, float]],
        instruments: Mapping[str, Iterable[Change]],
        window_ms: int = DEFAULT_WINDOW_MS,
    ) -> None:
        self.epoch = epoch
        self.window_ms = window_ms
        self.windows: dict[int, Published] = {
            offset: Published(*windows[offset]) for offset in sorted(windows)
        }
        ends_ms = [window.end_ms for window in self.windows.values()]
        self.is_in_parts = any(b <= a for a, b in pairwise(ends_ms))
        """Whether several jobs have published, each its part of a window."""
        self.instruments = {
            isin: Changes(changes) for isin, changes in instruments.items()
        }

    def changes(self, isin: str) -> Changes:
        """Return the changes of an instrument; none of one that did not trade."""
        return self.instruments.get(isin, NO_CHANGES)

    def in_window(self, changes: Changes, place: int) -> Iterator[int]:
        """Yield a change, then those before it in other parts of its window."""
        yield place
        window = self._end_ms(changes, place)
        while window is not None and place and self.is_in_parts:
            place -= 1
            if self._end_ms(changes, place) != window:
                return
            yield place

    def _end_ms(self, changes: Changes, place: int) -> float | None:
        window = self.windows.get(changes.offsets[place])
        return None if window is None else window.end_ms

    def first_ms(self, changes: Changes, place: int) -> float:
        """Return when the change's first news entered the log.

        Where that is not known: its trade's own time, if it lies within its window,
        else the window's end.
        """
        first_ms = changes.firsts_ms[place]
        if not isnan(first_ms):
            return first_ms
        end_ms = self.windows[changes.offsets[place]].end_ms
        time_ms = changes.times_us[place] / 1e3
        return time_ms if end_ms - self.window_ms <= time_ms < end_ms else end_ms
