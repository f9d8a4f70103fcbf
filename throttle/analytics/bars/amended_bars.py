"""Bars that go on: which trade amends one, which changed, which closed. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_bars import US_PER_MS, ZERO
from throttle.analytics.partials.partial_rule import PartialRule, PlacedTrades, floor
from throttle.contract.bar_intervals import (
    DayBar,
    day_of_bars,
    is_narrower,
    with_bar,
)
from throttle.contract.bars import Bar, newer
from throttle.contract.session_calendar import SessionCalendars

Place = tuple[str, int]
"""An instrument and the start of a bar."""


@dataclass(frozen=True, slots=True)
class BarPartials(PartialRule):
    """Bars of ``bars_ms``, amended for ``lateness_ms`` after they have closed."""

    takes_back: ClassVar[bool] = True
    keeps_series: ClassVar[bool] = True

    bars_ms: int
    lateness_ms: int

    def place(self, trades: pa.Table) -> PlacedTrades:
        """Place trades; a ``late`` one, appended when its bar had closed, amends it."""
        starts = floor(pc.divide(trades["time"], US_PER_MS), self.bars_ms)
        lasts_ms = pa.scalar(self.bars_ms + self.close_after_ms, pa.int64())
        since_ms = pc.subtract(trades["append_ms"], pc.add(starts, lasts_ms))
        in_time = pc.less(since_ms, pa.scalar(self.lateness_ms, pa.int64()))
        late = pc.greater_equal(since_ms, ZERO).cast(pa.int64())
        return PlacedTrades(trades, starts, in_time, late)


@dataclass(frozen=True, slots=True)
class BarChanges:
    """What a batch changes: bars, newest bars and days.

    ``kept`` counts bars that came in a lesser edition than is known of them. Of the
    instruments ``narrowed`` the day has lost a price: it is to be ``refolded``.
    """

    bars: tuple[Bar, ...]
    newest: Mapping[str, Bar]
    days: Mapping[str, DayBar]
    kept: int
    narrowed: frozenset[str] = frozenset()

    def refolded(
        self, stored: Mapping[str, Iterable[Bar]], calendars: SessionCalendars
    ) -> "BarChanges":
        """Return it with the days that lost a price, folded from all their bars.

        ``stored`` are those before the batch; if some are gone, a day stays as it is.
        """
        days = dict(self.days)
        for isin, before in stored.items():
            bars = {bar.start_ms: bar for bar in before}
            bars |= {bar.start_ms: bar for bar in self.bars if bar.isin == isin}
            calendar = calendars.of(isin)
            day = day_of_bars([bars[start] for start in sorted(bars)], calendar)
            # Only if it is of the same trades.
            if day is not None and _edition(day) == _edition(days[isin]):
                days[isin] = day
        return replace(self, days=days)


@dataclass(slots=True)
class BarBoard:
    """The open bars, each instrument's newest bar and its day, as Redis has them."""

    calendars: SessionCalendars
    open: dict[Place, Bar] = field(default_factory=dict)
    newest: dict[str, Bar] = field(default_factory=dict)
    days: dict[str, DayBar] = field(default_factory=dict)

    def unknown(self, bars: Iterable[Bar]) -> list[Place]:
        """Return the places of bars that Redis may know and this board does not."""
        return [
            (bar.isin, bar.start_ms)
            for bar in bars
            if (bar.isin, bar.start_ms) not in self.open
            and bar.isin in self.newest
            and bar.start_ms <= self.newest[bar.isin].start_ms
        ]

    def changes(
        self, bars: Iterable[Bar], stored: Mapping[Place, Bar], clock_ms: int
    ) -> BarChanges:
        """Return what ``bars`` change once the log's clock is at ``clock_ms``.

        ``stored`` has what Redis has of ``unknown(bars)``. The board stays as it is.
        """
        changed: dict[Place, Bar] = {}
        days: dict[str, DayBar] = {}
        newest: dict[str, Bar] = {}
        narrowed: set[str] = set()
        kept = 0
        for bar in bars:
            place = bar.isin, bar.start_ms
            before = self.open.get(place, stored.get(place))
            after = replace(bar, closed=bar.end_ms <= clock_ms)
            after = newer(before, after)
            kept += before is not None and after.edition > bar.edition
            if after == before:
                continue
            changed[place] = after
            day = days.get(bar.isin, self.days.get(bar.isin))
            later = with_bar(day, before, after, self.calendars.of(bar.isin))
            if later is not None:
                days[bar.isin] = later
                is_of_day = later.bar.start_ms <= bar.start_ms
                if is_of_day and before is not None and is_narrower(after, before):
                    narrowed.add(bar.isin)
        for place, bar in self.open.items():
            if place not in changed and bar.end_ms <= clock_ms:
                changed[place] = replace(bar, closed=True)
        for bar in changed.values():
            other = newest.get(bar.isin, self.newest.get(bar.isin))
            if other is None or bar.start_ms >= other.start_ms:
                newest[bar.isin] = bar
        return BarChanges(
            tuple(changed.values()), newest, days, kept, frozenset(narrowed)
        )

    def apply(self, changes: BarChanges) -> None:
        """Take over what was published."""
        for bar in changes.bars:
            place = bar.isin, bar.start_ms
            if bar.closed:
                self.open.pop(place, None)
            else:
                self.open[place] = bar
        self.newest.update(changes.newest)
        self.days.update(changes.days)


def _edition(day: DayBar) -> tuple[int, object]:
    return day.bar.start_ms, day.bar.edition
