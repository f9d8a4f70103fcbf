"""Longer bars of those that change: which parts are needed, what they make. Pure.

It keeps the parts of the newest bar of each interval and instrument that somebody
watches, and of no other. A part is only ever replaced by a newer state of it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from gateway.stream.bars.bar_update import BarId, BarRow
from throttle.contract.bar_intervals import DAY, INTERVALS_MS, DayBar, fold, span_of
from throttle.contract.bars import Bar, newer
from throttle.contract.session_calendar import EVERYWHERE, SessionCalendars

Wants = Callable[[str, str], bool]
"""Says whether anybody watches an interval of an instrument."""


class BarSpan(NamedTuple):
    """Names a longer bar by where its parts are: in ``[start_ms, end_ms)``."""

    interval: str
    isin: str
    start_ms: int
    end_ms: int


@dataclass(slots=True)
class _Shelf:
    """The parts of one longer bar, by their start."""

    span: BarSpan
    parts: dict[int, Bar] = field(default_factory=dict)

    def put(self, bar: Bar) -> None:
        """Take a part in, if it is newer than the one known."""
        known = self.parts.get(bar.start_ms)
        self.parts[bar.start_ms] = newer(known, bar)


class BarFolder:
    """Makes of changed bars everything that changes with them.

    ``missing`` says which parts have to be read first; ``put`` takes them in; ``rows``
    is then what changed. ``bars_ms`` is the length of the bars that are published;
    ``calendars`` say when days begin, ``clock_ms`` how far the log's clock is.
    """

    def __init__(
        self,
        bars_ms: int = 60_000,
        calendars: SessionCalendars = EVERYWHERE,
        clock_ms: int = 0,
    ) -> None:
        self.bars_ms = bars_ms
        self.calendars = calendars
        self._longer = tuple(n for n, ms in INTERVALS_MS.items() if ms > bars_ms)
        self._same = tuple(n for n, ms in INTERVALS_MS.items() if ms == bars_ms)
        self._shelves: dict[tuple[str, str], _Shelf] = {}
        # Not over yet by the log's clock, though a later one has begun.
        self._ending: dict[BarSpan, _Shelf] = {}
        self._days: dict[str, Bar] = {}
        # Sent open to somebody, and not changed since.
        self._open: dict[BarSpan, Bar] = {}
        self._read: dict[BarSpan, _Shelf] = {}
        self._clock_ms = clock_ms

    def __len__(self) -> int:
        shelves = [*self._shelves.values(), *self._ending.values()]
        return sum(len(shelf.parts) for shelf in shelves)

    def clear(self) -> None:
        """Forget everything: some messages were not seen."""
        self._shelves.clear()
        self._ending.clear()
        self._days.clear()
        self._open.clear()
        self._read.clear()

    def missing(
        self, bars: Sequence[Bar], days: Sequence[DayBar], wants: Wants
    ) -> list[BarSpan]:
        """Return the longer bars that the changes are in and whose parts are not here.

        Parts of what nobody watches any more are forgotten.
        """
        self._shelves = {k: s for k, s in self._shelves.items() if wants(*k)}
        self._ending = {
            span: shelf for span, shelf in self._ending.items() if wants(*span[:2])
        }
        self._days = {i: day for i, day in self._days.items() if wants(DAY, i)}
        self._open = {s: bar for s, bar in self._open.items() if wants(*s[:2])}
        self._read.clear()
        wanted = dict.fromkeys(self._spans(bars, days, wants))
        return [span for span in wanted if not self._has(span)]

    def put(self, span: BarSpan, parts: Iterable[Bar]) -> None:
        """Take in all parts of a longer bar, as they are kept."""
        shelf = _Shelf(span)
        for bar in parts:
            shelf.put(bar)
        self._read[span] = shelf

    def rows(
        self, bars: Sequence[Bar], days: Sequence[DayBar], clock_ms: int, wants: Wants
    ) -> Iterator[BarRow]:
        """Yield what has changed; each bar once, in its newest state.

        Bars whose end the log's clock has just passed are closed.
        """
        changed: dict[BarId, Bar] = {}
        of_instrument: dict[str, list[Bar]] = defaultdict(list)
        for bar in bars:
            of_instrument[bar.isin].append(bar)
            for interval in self._same:
                if wants(interval, bar.isin):
                    changed[BarId(interval, bar.isin, bar.start_ms)] = bar
        for span, folded in self._ended(clock_ms):
            changed[BarId(span.interval, span.isin, span.start_ms)] = folded
        spans = set(self._spans(bars, days, wants))
        for span in sorted(spans, key=lambda span: span.start_ms):
            folded = self._fold(span, of_instrument[span.isin], clock_ms)
            changed[BarId(span.interval, span.isin, span.start_ms)] = folded
        for day in days:
            if wants(DAY, day.bar.isin):
                known = self._days.get(day.bar.isin)
                if known is not None and known.start_ms < day.bar.start_ms:
                    last = replace(known, closed=True)
                    changed[BarId(DAY, known.isin, known.start_ms)] = last
                self._days[day.bar.isin] = day.bar
                key = BarId(DAY, day.bar.isin, day.bar.start_ms)
                changed[key] = closed_day(day, clock_ms)
        self._clock_ms = clock_ms
        for key, bar in changed.items():
            yield row_of(key.interval, bar)

    def note_days(self, days: Iterable[DayBar]) -> None:
        """Know days that somebody was sent, so that they can be closed."""
        for day in days:
            self._days.setdefault(day.bar.isin, day.bar)

    def is_longer(self, interval: str) -> bool:
        """Tell whether bars of an interval, a day aside, are folded from others."""
        return interval in self._longer

    def note_open(self, interval: str, bars: Iterable[Bar], clock_ms: int) -> None:
        """Know longer bars that somebody was sent, so that their end closes them.

        They are as of ``clock_ms``.
        """
        if self.is_longer(interval):
            self._clock_ms = min(self._clock_ms, clock_ms)
            for bar in bars:
                span = BarSpan(interval, bar.isin, bar.start_ms, bar.end_ms)
                if not bar.closed and not self._has(span):
                    self._open[span] = bar

    def adopt(self, other: "BarFolder") -> None:
        """Keep the parts that another folder has read, of bars that are not here."""
        self._clock_ms = min(self._clock_ms, other._clock_ms)
        for key, shelf in other._shelves.items():
            self._shelves.setdefault(key, shelf)

    def _spans(
        self, bars: Iterable[Bar], days: Iterable[DayBar], wants: Wants
    ) -> Iterator[BarSpan]:
        starts = {day.bar.isin: day.bar.start_ms for day in days}
        for bar in bars:
            calendar = self.calendars.of(bar.isin)
            for interval in self._longer:
                if wants(interval, bar.isin):
                    start, end = span_of(bar.start_ms, interval, calendar)
                    yield BarSpan(interval, bar.isin, start, end)
            if wants(DAY, bar.isin):
                start, end = span_of(bar.start_ms, DAY, calendar)
                # Of the newest day we are told; an earlier one is folded.
                if starts.get(bar.isin) != start:
                    yield BarSpan(DAY, bar.isin, start, end)

    def _has(self, span: BarSpan) -> bool:
        shelf = self._shelves.get((span.interval, span.isin))
        # One that began before this one was followed has seen all of this one.
        return shelf is not None and shelf.span.start_ms <= span.start_ms

    def _fold(self, span: BarSpan, bars: Iterable[Bar], clock_ms: int) -> Bar:
        key = span.interval, span.isin
        self._open.pop(span, None)
        shelf = self._read.get(span)
        known = self._shelves.get(key)
        if shelf is None:
            shelf = self._ending.get(span, known)
            if shelf is None or shelf.span.start_ms < span.start_ms:
                shelf = _Shelf(span)
        is_newest = known is None or known.span.start_ms <= span.start_ms
        if is_newest and span.interval != DAY:
            is_over = known is None or known.span.end_ms <= clock_ms
            if known is not None and known is not shelf and not is_over:
                self._ending[known.span] = known
            self._shelves[key] = shelf
        for bar in bars:
            if span.start_ms <= bar.start_ms < span.end_ms:
                shelf.put(bar)
        return self._folded(shelf, clock_ms)

    def _folded(self, shelf: _Shelf, clock_ms: int) -> Bar:
        parts = [shelf.parts[start] for start in sorted(shelf.parts)]
        calendar = self.calendars.of(shelf.span.isin)
        (folded,) = fold(parts, shelf.span.interval, calendar, clock_ms)
        return folded

    def _ended(self, clock_ms: int) -> Iterator[tuple[BarSpan, Bar]]:
        """Yield the bars whose end the clock has passed since the last time."""
        before_ms = self._clock_ms
        for interval in self._longer:
            length_ms = INTERVALS_MS[interval]
            if before_ms // length_ms == clock_ms // length_ms:
                continue
            for shelf in (*self._shelves.values(), *self._ending.values()):
                span = shelf.span
                if span.interval == interval and before_ms < span.end_ms <= clock_ms:
                    yield span, self._folded(shelf, clock_ms)
        self._ending = {
            span: shelf
            for span, shelf in self._ending.items()
            if span.end_ms > clock_ms
        }
        # A part that was open would have changed: it has closed since.
        for span in [span for span in self._open if span.end_ms <= clock_ms]:
            yield span, replace(self._open.pop(span), closed=True)
        for isin, day in self._days.items():
            if before_ms < day.end_ms <= clock_ms:
                span = BarSpan(DAY, isin, day.start_ms, day.end_ms)
                yield span, replace(day, closed=True)


def closed_day(day: DayBar, clock_ms: int) -> Bar:
    """Return a day as a bar, closed once the log's clock has passed its end."""
    return replace(day.bar, closed=clock_ms >= day.bar.end_ms)


def row_of(interval: str, bar: Bar) -> BarRow:
    """Encode a bar for clients."""
    key = BarId(interval, bar.isin, bar.start_ms)
    body = b'{"interval":"%b",%b' % (interval.encode(), bar.body()[1:])
    return BarRow(key, (*bar.edition, bar.closed), body)
