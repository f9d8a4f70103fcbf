"""The day so far is what was traded since the day began: any trades, order, crash."""

import json
from collections.abc import Iterable
from decimal import Decimal

import pytest
import redis
from hypothesis import given, settings

from tests.examples import many
from tests.logged import Logged, logged_in_redis
from tests.oracle import EVERYTHING, by_append_time, sums_of_trades
from tests.published import Day, item_of, read_day, stored_days
from tests.throttle.testing.tapes import (
    Step,
    W,
    is_one_server,
    play,
    rows_of,
    tapes,
)
from throttle.contract.snapshot import Row
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis

BEGINS = "Asia/Seoul@09:01"
"""A minute after the driver's start, which is nine o'clock there."""
BEGINS_MS = START_MS + 60_000
DAY_MS = 86_400_000


def days_of(trades: Iterable[Logged], upto_ms: int) -> dict[str, Day]:
    """Return the day so far of each instrument, as of the window that ends then."""
    window_of = by_append_time(W)
    placed: dict[str, list[tuple[int, Logged]]] = {}
    for one in trades:
        end_ms = window_of(one)
        if end_ms <= upto_ms:
            start_ms = BEGINS_MS - (DAY_MS if end_ms <= BEGINS_MS else 0)
            isin = json.loads(one.payload)["isin"]
            placed.setdefault(isin, []).append((start_ms, one))
    days = {}
    for isin, all_of_it in placed.items():
        newest_ms = max(start_ms for start_ms, _ in all_of_it)
        of_day = [one for start_ms, one in all_of_it if start_ms == newest_ms]
        days[isin] = Day(newest_ms, sums_of_trades(of_day)[isin], open_of(of_day))
    return days


def open_of(trades: Iterable[Logged]) -> Decimal | None:
    """Return the price of the first trade that counts for the last price."""
    priced = []
    for one in trades:
        trade = json.loads(one.payload)
        if "last" in trade.get("updates", EVERYTHING).split(","):
            order = trade["time"], trade["seq"], one.position
            priced.append((order, Decimal(trade["price"])))
    return min(priced)[1] if priced else None


class Follower:
    """A client: an item with a day replaces its own, one without adds to it."""

    def __init__(self) -> None:
        self.days: dict[str, Day] = {}

    def take(self, row: Row) -> Day:
        """Take an item in, and return the day."""
        before = self.days.get(row.isin)
        if row.starts_day or before is None:
            day = read_day(row.day)
        else:
            day = before._replace(sums=before.sums.plus(item_of(row).sums))
        self.days[row.isin] = day
        return day


@settings(max_examples=many(80), suppress_health_check=is_one_server)
@given(tape=tapes)
def test_the_day_is_what_was_traded(
    tape: list[Step], redis_url: str, client: redis.Redis
) -> None:
    """As of every update and every window of the log, and whoever adds up has it."""
    client.flushall()
    with ThrottleDriver(redis_url=redis_url, day_calendars=BEGINS) as driver:
        play(tape, [driver])
        windows, updates = driver.windows(), driver.updates()
    trades = logged_in_redis(client)
    end_ms = START_MS + windows[-1].end_ms
    assert stored_days(client) == days_of(trades, end_ms)
    of_log, of_updates = Follower(), Follower()
    for window in windows:
        expected = days_of(trades, START_MS + window.end_ms)
        for row in rows_of([window]):
            assert of_log.take(row) == expected[row.isin]
            assert row.starts_day or not row.day
    for update in updates:
        expected = days_of(trades, START_MS + update.end_ms)
        for row in rows_of([update]):
            assert of_updates.take(row) == expected[row.isin] == read_day(row.day)
