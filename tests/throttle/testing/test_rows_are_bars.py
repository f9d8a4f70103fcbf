"""What rows and bars say of the same trades is the same, whatever those count for."""

from collections.abc import Iterable
from decimal import Decimal

import pytest
import redis
from hypothesis import HealthCheck, given, settings

from tests.examples import many
from tests.published import stored_days
from tests.throttle.analytics.bar_entries import TAKING_ENTRIES, trade_of
from tests.throttle.analytics.bar_oracle import Entry
from throttle.contract.bars import Bar, add
from throttle.testing.analytics_driver import AnalyticsDriver
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
LATEST_MS = 600_000


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
