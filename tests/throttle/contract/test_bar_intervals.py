"""Bars of a minute fold into longer ones and into days, without a contradiction."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.bar_intervals import (
    INTERVALS,
    DayBar,
    fold,
    span_of,
    with_bar,
)
from throttle.contract.bars import Bar, add
from throttle.contract.session_calendar import SessionCalendar

MINUTE = 60_000
MIDNIGHT_MS = 1_773_932_400_000  # 2026-03-20 00:00 in Seoul
PRICES = st.decimals(min_value=1, max_value=10**6, places=2)


def make_bar(
    minute: int,
    price: Decimal,
    trades: int = 1,
    *,
    closed: bool = True,
    has: tuple[bool, bool] = (True, True),
) -> Bar:
    """Make a bar some minutes after a midnight in Seoul.

    ``has`` says whether it has an open and a close, and whether a high and a low.
    """
    start_ms = MIDNIGHT_MS + minute * MINUTE
    price_of, extreme_of = (price if one else None for one in has)
    high, low = extreme_of and price + 1, extreme_of and price - Decimal("0.5")
    prices = (price_of, high, low, price_of)
    sums = price * trades, price * trades
    span = start_ms, start_ms + MINUTE
    return Bar("KR7005930003", *span, *prices, *sums, trades, closed, 0)


HAS = st.tuples(st.booleans(), st.booleans())
BARS = st.lists(
    st.tuples(st.integers(0, 3_000), PRICES, st.integers(1, 9), HAS),
    unique_by=lambda bar: bar[0],
    min_size=1,
).map(lambda bars: [make_bar(*bar[:3], has=bar[3]) for bar in sorted(bars)])


def there(bars: list[Bar], name: str) -> list[Decimal]:
    """Return what bars have under a name, of those that have something."""
    return [value for bar in bars if (value := getattr(bar, name)) is not None]


@given(BARS, st.sampled_from(INTERVALS))
def test_longer_bars_have_what_their_parts_have(bars: list[Bar], interval: str) -> None:
    """Nothing is lost or counted twice, and each is where it belongs."""
    longer = list(fold(bars, interval))
    assert sum(bar.trades for bar in longer) == sum(bar.trades for bar in bars)
    assert add(bar.value for bar in longer) == add(bar.value for bar in bars)
    assert [bar.start_ms for bar in longer] == sorted({b.start_ms for b in longer})
    for bar in longer:
        parts = [b for b in bars if bar.start_ms <= b.start_ms < bar.end_ms]
        assert bar.open == next(iter(there(parts, "open")), None)
        assert bar.close == next(iter(there(parts, "close")[::-1]), None)
        assert bar.high == max(there(parts, "high"), default=None)
        assert bar.low == min(there(parts, "low"), default=None)


@given(BARS)
def test_folding_in_steps_is_folding_at_once(bars: list[Bar]) -> None:
    """An hour of minutes is an hour of its quarters."""
    quarters = list(fold(bars, "15m"))
    steps = [replace(bar, closed=True) for bar in quarters]
    hours = [replace(bar, closed=True) for bar in fold(bars, "1h")]
    assert [replace(bar, closed=True) for bar in fold(steps, "1h")] == hours


@given(st.permutations(range(12)), st.data())
def test_a_day_carried_along_is_the_fold_of_its_bars(
    order: list[int], data: st.DataObject
) -> None:
    """In whatever order its bars come, and however often they are amended."""
    known: dict[int, Bar] = {}
    day: DayBar | None = None
    for minute in [*order, *order[:4]]:
        before = known.get(minute)
        price = data.draw(PRICES)
        after = make_bar(minute, price, has=data.draw(HAS))
        if before is not None:
            both = [before, after]
            after = replace(
                before,
                open=next(iter(there(both, "open")), None),
                high=max(there(both, "high"), default=None),
                low=min(there(both, "low"), default=None),
                close=next(iter(there(both[::-1], "close")), None),
                trades=before.trades + 1,
                volume=add([before.volume, price]),
                revision=before.revision + 1,
            )
        day = with_bar(day, before, after)
        known[minute] = after
    assert day is not None
    [whole] = fold([known[minute] for minute in sorted(known)], "1d")
    assert day.bar == replace(whole, closed=False)
    assert DayBar.decode(day.bar.isin, day.encode()) == day


def test_a_new_day_takes_the_place_of_the_old_one() -> None:
    """A bar of a day that is over changes nothing any more."""
    old = with_bar(None, None, make_bar(24 * 60 - 1, Decimal(5)))
    new = with_bar(old, None, make_bar(24 * 60, Decimal(6)))
    assert new is not None
    assert (new.bar.open, new.bar.trades) == (6, 1)
    assert with_bar(new, None, make_bar(24 * 60 - 2, Decimal(9))) == new


def test_a_longer_bar_closes_when_the_clock_has_passed_it_or_its_last_part() -> None:
    """A quiet last minute holds no hour open, given the log's clock."""
    bars = [make_bar(0, Decimal(5)), make_bar(3, Decimal(5))]
    assert [bar.closed for bar in fold(bars, "5m")] == [False]
    over_ms = MIDNIGHT_MS + 5 * MINUTE
    assert [bar.closed for bar in fold(bars, "5m", clock_ms=over_ms)] == [True]
    full = [*bars, make_bar(4, Decimal(5))]
    assert [bar.closed for bar in fold(full, "5m")] == [True]


def test_an_unknown_interval_is_refused() -> None:
    """The error names those there are."""
    with pytest.raises(ValueError, match="'2m': must be one of 1m, 5m, 15m, 1h, 1d"):
        span_of(0, "2m")


@pytest.mark.parametrize(
    ("begins", "minutes", "starts_at"),
    [("00:00", -1, -1440), ("00:00", 0, 0), ("09:00", 539, -900), ("09:00", 540, 540)],
)
def test_a_day_begins_at_midnight_or_with_the_session(
    begins: str, minutes: int, starts_at: int
) -> None:
    """By the clock of the exchange."""
    calendar = SessionCalendar(begins=begins)
    start_ms, end_ms = span_of(MIDNIGHT_MS + minutes * MINUTE, "1d", calendar)
    assert start_ms == MIDNIGHT_MS + starts_at * MINUTE
    assert end_ms - start_ms == 24 * 60 * MINUTE
