"""A market whose trades come in any order, and the windows that a throttle makes."""

import random
from collections.abc import Sequence
from functools import reduce

import redis

from ingest.trade import Trade
from ingest.tradelog.contract import partition_of
from tests.published import read_snapshots
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row, WindowSnapshot
from throttle.contract.trade_order import encode_version
from throttle.testing.driver import START_MS, ThrottleDriver
from tickthrottle_client.updates_v1 import ALL

WINDOW_MS = 2_000
EACH = 12
"""Trades of a window."""


def make_trades(isins: Sequence[str], number: int, seed: int = 1) -> list[Trade]:
    """Return trades in the order they are appended; some come behind newer ones.

    Later ones do not all count for everything: each instrument was shown by then.
    """
    chance = random.Random(seed)
    in_part = ("last,range", "last,volume", "range", "volume", "none")
    return [
        Trade(
            chance.choice(isins),
            (START_MS + appended_ms(place)) * 1_000 - chance.choice((0, 0, 7_000_000)),
            place,
            f"{chance.randint(1, 900)}.{chance.randint(0, 99):02}",
            chance.choice(("1", "40", "0.0000000000000001", "250000", "0.30")),
            {"updates": chance.choice(in_part)}
            if place > 6 * EACH and chance.random() < 0.3
            else {},
        )
        for place in range(number)
    ]


def appended_ms(place: int) -> int:
    """Return when a trade is appended, since the market's start."""
    return place // EACH * WINDOW_MS + place % EACH


def newest_of(trades: Sequence[Trade]) -> Trade:
    """Return the latest of those trades that count for the last price."""
    of_last = (trade for trade in trades if trade.updates.last)
    return max(of_last, key=lambda trade: (trade.time_us, trade.seq))


def publish_trades(
    trades: Sequence[Trade], client: redis.Redis, redis_url: str
) -> list[WindowSnapshot]:
    with ThrottleDriver(redis_url=redis_url, partitions=2) as driver:
        for place, trade in enumerate(trades):
            partition = partition_of(trade.isin, 2)
            at_ms = appended_ms(place)
            driver.payload(trade.to_wire(), at_ms=at_ms, partition=partition)
            if trade.size == "1":
                driver.turn_clock(at_ms)
        driver.turn_clock(appended_ms(len(trades)) + WINDOW_MS)
    return read_snapshots(client)


def row_of(trades: Sequence[Trade]) -> Row:
    """Return the row of an instrument's trades, all of them news."""
    newest = newest_of(trades)
    version = encode_version(newest.time_us, newest.seq, newest.seq)
    is_own = len(trades) == 1 and newest.updates == ALL
    sums = ONE if is_own else sums_of(trades).encode()
    return Row(newest.isin, version, sums, newest.to_row())


def sums_of(trades: Sequence[Trade]) -> RowSums:
    every = (RowSums(1, Amounts.of_trade(t.price, t.size, t.updates)) for t in trades)
    return reduce(RowSums.fold, every)
