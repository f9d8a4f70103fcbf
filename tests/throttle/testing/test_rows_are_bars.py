"""What rows and bars say of the same trades is the same, whatever those count for."""

from collections import defaultdict
from collections.abc import Iterable
from decimal import Decimal

import pytest
import redis
from hypothesis import HealthCheck, given, settings

from tests.examples import many
from tests.published import stored_days
from tests.throttle.analytics.bar_entries import ENTRIES, TAKING_ENTRIES, trade_of
from tests.throttle.analytics.bar_oracle import Entry
from throttle.contract.bars import Bar, add
from throttle.contract.group import decimal_text
from throttle.contract.row_sums import Amounts, RowSums
from throttle.testing.analytics_driver import AnalyticsDriver
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
LATEST_MS = 600_000


def fold(every: Iterable[RowSums]) -> RowSums:
    """Return the sums of all trades; of none at all, too."""
    total = RowSums(0, Amounts(0, 0, None, None))
    for sums in every:
        total = total.fold(sums)
    return total


def sums_of_bars(bars: Iterable[Bar]) -> tuple[Decimal | int | None, ...]:
    """Return trades, volume, value, high and low of bars."""
    every = list(bars)
    highs, lows = (
        [p for bar in every if (p := getattr(bar, name)) is not None]
        for name in ("high", "low")
    )
    return (
        sum(bar.trades for bar in every),
        add(bar.volume for bar in every),
        add(bar.value for bar in every),
        max(highs, default=None),
        min(lows, default=None),
    )


def as_decimals(sums: RowSums) -> tuple[Decimal | int | None, ...]:
    """Return sums as bars have them."""
    assert sums.amounts is not None
    numbers = (
        None if n is None else Decimal(decimal_text(n).decode()) for n in sums.amounts
    )
    return sums.trades, *numbers


def window_of(entry: Entry) -> int:
    """Return the window in which an entry was appended."""
    return (entry.append_ms - START_MS) // W


@settings(
    max_examples=many(25), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TAKING_ENTRIES)
def test_the_day_so_far_is_the_sum_of_bars(
    redis_url: str, client: redis.Redis, entries: list[Entry]
) -> None:
    """Without what was taken back."""
    client.flushall()
    entries.sort(key=lambda entry: entry.append_ms)
    bars = AnalyticsDriver(analytics="bars", lateness_s=3_600, partitions=2)
    with ThrottleDriver(redis_url=redis_url, partitions=2) as driver:
        for entry in entries:
            at_ms, wire = entry.append_ms - START_MS + W, trade_of(entry).to_wire()
            for one in (driver, bars):
                one.payload(wire, at_ms=at_ms, partition=entry.partition)
        # The throttle takes back batch by batch.
        for to_ms in range(W, LATEST_MS, 10 * W):
            driver.turn_clock(to_ms)
        bars.turn_clock(LATEST_MS)
        days = stored_days(client)
    for isin, day in days.items():
        of_it = [bar for bar in bars.bars() if bar.isin == isin]
        assert day.sums == sums_of_bars(of_it)
        assert day.open == next((b.open for b in of_it if b.open is not None), None)


@settings(
    max_examples=many(15), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ENTRIES)
def test_the_sum_of_rows_is_the_sum_of_bars(
    redis_url: str, client: redis.Redis, entries: list[Entry]
) -> None:
    """But for trades before an instrument's first price: those are in the books."""
    client.flushall()
    entries.sort(key=lambda entry: entry.append_ms)
    bars = AnalyticsDriver(analytics="bars", lateness_s=3_600)
    with ThrottleDriver(redis_url=redis_url) as driver:
        for entry in entries:
            # The first ones came a second before the start.
            at_ms, wire = entry.append_ms - START_MS + W, trade_of(entry).to_wire()
            for one in (driver, bars):
                one.payload(wire, at_ms=at_ms, partition=entry.partition)
        for one in (driver, bars):
            one.turn_clock(LATEST_MS)
        rows = [row for window in driver.windows() for row in window.rows.values()]
        books = driver.ledger().total
    of_rows = defaultdict(list)
    for row in rows:
        of_rows[row.isin].append(RowSums.decode(row.sums, row.body))
    unseen: list[Entry] = []
    for isin in {entry.isin for entry in entries}:
        trades = [entry for entry in entries if entry.isin == isin]
        shown = [window_of(e) for e in trades if e.counts_for("last")]
        before = [e for e in trades if window_of(e) < min(shown, default=2**40)]
        unseen += before
        hidden = (
            RowSums(1, Amounts.of_trade(e.price, e.size, trade_of(e).updates))
            for e in before
        )
        expected = sums_of_bars(bar for bar in bars.bars() if bar.isin == isin)
        assert as_decimals(fold([*of_rows[isin], *hidden])) == expected
    assert books.not_last == sum(not entry.counts_for("last") for entry in entries)
    assert books.not_last >= len(unseen)
    trades_read, volume, value, *_ = sums_of_bars(bars.bars())
    assert (books.read, bars.tally("bars").too_late) == (trades_read, 0)
    for name, total in (("volume", volume), ("value", value)):
        read = getattr(books, name)["read"]
        assert Decimal(decimal_text(read).decode()) == total
