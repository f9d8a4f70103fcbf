"""A feed of trades and statuses to be killed: python -m tests.e2e.status_feed URL.

Each instrument has a status before every ``EVERY``-th of its trades: those before it
are acknowledged by then, those after it are not sent yet. What a killed feed is not
sure of the next one sends again.
"""

import sys
import time

import redis

from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import HALTED, TRADING, TradingStatus
from ingest.trade import Trade
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.e2e.feeds import CAP, PARTITIONS
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG

INSTRUMENTS = (SAMSUNG, HYNIX, NAVER)
EVERY = 25
STEP_S = 0.02
PROGRESS = "status-feed"
"""The Redis key of the next step, with the time of the first one."""


def main() -> None:
    """Feed until killed."""
    client = redis.Redis.from_url(sys.argv[1])
    feed = StatusFeed(client)
    step = int(client.hget(PROGRESS, "step") or 0)
    while True:
        feed.take(step)
        step += 1
        client.hset(PROGRESS, "step", step)
        time.sleep(STEP_S)


class StatusFeed:
    """Makes the steps of a feed: the same step says the same, whoever takes it."""

    def __init__(self, client: redis.Redis) -> None:
        info = open_log(client, "tt", PARTITIONS)
        self._trades = RedisLogWriter(client, "tt", info, CAP)
        self._statuses = StatusLog(client, "tt", PARTITIONS)
        client.hsetnx(PROGRESS, "begun_us", time.time_ns() // 1_000)
        self._begun_us = int(client.hget(PROGRESS, "begun_us") or 0)

    def take(self, step: int) -> None:
        """Append a trade of an instrument; before every ``EVERY``-th add a status."""
        seq, place = divmod(step, len(INSTRUMENTS))
        isin, time_us = INSTRUMENTS[place], self._begun_us + step * 1_000
        number, rest = divmod(seq, EVERY)
        if number and not rest:
            word = HALTED if number % 2 else TRADING
            status = TradingStatus(isin, word, time_us, reason=str(number))
            self._statuses.add(status, time.time_ns() // 1_000)
        trade = Trade(isin, time_us, seq, str(1_000 + seq % 7), "1")
        self._trades.append([(isin, trade.to_wire())])


if __name__ == "__main__":
    main()
