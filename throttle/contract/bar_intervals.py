"""How bars of a minute fold into longer ones, and into the day's statistics. Pure.

Longer bars are folded where they are read, so that none contradicts its parts. Those of
5 m, 15 m and 1 h begin at multiples since 1970; a day is the exchange's.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import TypeVar

from throttle.contract.bars import Bar, add, subtract
from throttle.contract.session_calendar import EVERYDAY, SessionCalendar

T = TypeVar("T", int, Decimal)

INTERVALS_MS = {"1m": 60_000, "5m": 300_000, "15m": 900_000, "1h": 3_600_000}
"""The length of each interval that has one."""

DAY = "1d"

INTERVALS = (*INTERVALS_MS, DAY)
"""Every interval's name, the shortest first."""


def span_of(
    time_ms: int, interval: str, calendar: SessionCalendar = EVERYDAY
) -> tuple[int, int]:
    """Return the start and end of the bar that a moment is in. Raises ValueError."""
    if interval == DAY:
        return calendar.day_of(time_ms)
    if interval not in INTERVALS_MS:
        raise ValueError(
            f"interval {interval!r}: must be one of {', '.join(INTERVALS)}"
        )
    length_ms = INTERVALS_MS[interval]
    start_ms = time_ms // length_ms * length_ms
    return start_ms, start_ms + length_ms


def fold(
    bars: Iterable[Bar],
    interval: str,
    calendar: SessionCalendar = EVERYDAY,
    clock_ms: int = 0,
) -> Iterator[Bar]:
    """Yield the longer bars of one instrument's bars, which come oldest first.

    A longer bar is closed when the log's clock has passed its end, or when a later one
    began with closed bars. Its ``revision`` is the sum of those of its parts.
    """

    within = 0, 0

    def span(bar: Bar) -> tuple[int, int]:
        nonlocal within
        if not within[0] <= bar.start_ms < within[1]:
            within = span_of(bar.start_ms, interval, calendar)
        return within

    for (start_ms, end_ms), parts in groupby(bars, span):
        yield _joined(list(parts), start_ms, end_ms, clock_ms)


def _joined(parts: Sequence[Bar], start_ms: int, end_ms: int, clock_ms: int) -> Bar:
    is_over = clock_ms >= end_ms or parts[-1].end_ms >= end_ms
    return Bar(
        parts[0].isin,
        start_ms,
        end_ms,
        next((bar.open for bar in parts if bar.open is not None), None),
        _extreme(max, (bar.high for bar in parts)),
        _extreme(min, (bar.low for bar in parts)),
        next((bar.close for bar in reversed(parts) if bar.close is not None), None),
        add(bar.volume for bar in parts),
        add(bar.value for bar in parts),
        sum(bar.trades for bar in parts),
        is_over and all(bar.closed for bar in parts),
        sum(bar.revision for bar in parts),
    )


@dataclass(frozen=True, slots=True)
class DayBar:
    """The statistics of an instrument's day: the fold of its bars, carried along.

    ``first_ms`` and ``last_ms`` are the starts of its first and last bar so far that
    has an open and a close, None without one. ``bar`` is what ``fold`` makes of all its
    bars, but for ``closed``, which nobody asks of a day that goes on.
    """

    bar: Bar
    first_ms: int | None
    last_ms: int | None

    def encode(self) -> bytes:
        """Encode as one line, without the ISIN."""
        places = (self.first_ms, self.last_ms)
        first, last = (b"-" if at is None else b"%d" % at for at in places)
        return b"%b %b %b" % (first, last, self.bar.encode())

    @classmethod
    def decode(cls, isin: str, line: bytes) -> "DayBar":
        """Decode what ``encode`` wrote. Raises ValueError."""
        *places, bar = line.split(b" ", 2)
        first, last = (None if at == b"-" else int(at) for at in places)
        return cls(Bar.decode(isin, bar), first, last)


def with_bar(
    day: DayBar | None,
    before: Bar | None,
    after: Bar,
    calendar: SessionCalendar = EVERYDAY,
) -> DayBar | None:
    """Return an instrument's day once its bar has changed from ``before`` (None: new).

    A later day takes the place of the one known; a bar of an earlier day changes
    nothing.
    """
    start_ms, end_ms = calendar.day_of(after.start_ms)
    if day is not None and day.bar.start_ms > start_ms:
        return day
    at = None if after.open is None else after.start_ms
    if day is None or day.bar.start_ms < start_ms:
        bar = replace(after, start_ms=start_ms, end_ms=end_ms, closed=False)
        return DayBar(bar, at, at)
    known = day.bar
    first_ms = _extreme(min, (day.first_ms, at))
    last_ms = _extreme(max, (day.last_ms, at))
    own = before or replace(after, volume=None, value=None, trades=0, revision=0)
    bar = replace(
        known,
        open=after.open if at == first_ms else known.open,
        close=after.close if at == last_ms else known.close,
        high=_extreme(max, (known.high, after.high)),
        low=_extreme(min, (known.low, after.low)),
        volume=_exchanged(known.volume, own.volume, after.volume),
        value=_exchanged(known.value, own.value, after.value),
        trades=known.trades + after.trades - own.trades,
        revision=known.revision + after.revision - own.revision,
    )
    return DayBar(bar, first_ms, last_ms)


def day_of_bars(
    bars: Sequence[Bar], calendar: SessionCalendar = EVERYDAY
) -> DayBar | None:
    """Return the newest day of one instrument's bars, which come oldest first."""
    days = [*fold(bars, DAY, calendar)]
    if not days:
        return None
    day = replace(days[-1], closed=False)
    of_day = [bar for bar in bars if bar.start_ms >= day.start_ms]
    opens = [bar.start_ms for bar in of_day if bar.open is not None]
    return DayBar(day, *((opens[0], opens[-1]) if opens else (None, None)))


def is_narrower(after: Bar, before: Bar) -> bool:
    """Tell whether a bar has lost a price that a longer one may have of it."""
    if before.open is not None and after.open is None:
        return True
    highest = _extreme(max, (before.high, after.high))
    lowest = _extreme(min, (before.low, after.low))
    return (highest, lowest) != (after.high, after.low)


def _extreme(which: Callable[[list[T]], T], values: Iterable[T | None]) -> T | None:
    """Return the least or the greatest of the values there are, None without one."""
    some = [value for value in values if value is not None]
    return which(some) if some else None


def _exchanged(
    total: Decimal | None, before: Decimal | None, after: Decimal | None
) -> Decimal | None:
    if total is None or after is None:
        return None
    return add((subtract(total, before) if before else total, after))
