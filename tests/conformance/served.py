"""A gateway with windows that never end, for the kit to judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from typing import Any

import redis

from ingest.statuses.status_log import StatusLog
from ingest.statuses.trading_status import AUCTION, HALTED, TRADING, TradingStatus
from tests.conftest import PATIENCE
from tests.gateway.bar_publisher import BarPublisher, make_bar
from tests.gateway.publisher import load_instruments
from tests.gateway.samples import make_isins
from tests.gateway.servers import running_gateway
from throttle.testing.driver import START_MS, ThrottleDriver

ISINS = make_isins(6)
HEARTBEAT_MS = 200 * int(PATIENCE)


OF_KOSPI = ISINS[:4]


@contextmanager
def served(redis_url: str, **settings: Any) -> Iterator[str]:
    """Serve windows of the job's own making, some ten a second; yield the address.

    Six instruments of two markets trade, with late trades and some that are taken back;
    each window one has another status, and the first another bar. ``settings`` are the
    gateway's.
    """
    is_over = Event()
    markets = {isin: "KOSPI" if isin in OF_KOSPI else "KOSDAQ" for isin in ISINS}
    listed = "".join(
        f"{isin},{at:06},{markets[isin]}\n" for at, isin in enumerate(ISINS)
    )
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    with (
        redis.Redis.from_url(redis_url) as client,
        ThrottleDriver(redis_url=redis_url) as driver,
    ):
        load_instruments(client, f"isin,code,market\n{listed}")
        log = StatusLog(client, "tt", driver.partitions)
        bars = BarPublisher(client)

        def trade(window: int) -> None:
            say_status(log, window)
            trade_window(driver, window)
            bar = make_bar(ISINS[0], window // 5, trades=window % 5 + 1)
            bars.publish(bar, clock_ms=bar.start_ms + window)

        trade(0)

        def publish_on() -> None:
            for window in count(1):
                if is_over.wait(0.1):
                    return
                trade(window)

        thread = Thread(target=publish_on)
        options = {"heartbeat_ms": HEARTBEAT_MS, **settings}
        with running_gateway(redis_url, **options) as gateway:
            gateway.wait_for("reloads")
            thread.start()
            try:
                yield f"ws://{gateway.host}:{gateway.port}/v1/stream"
            finally:
                is_over.set()
                thread.join()


def say_status(log: StatusLog, window: int) -> None:
    """Have an instrument halt, trade, or be in an auction from a window on."""
    kind = (HALTED, TRADING, AUCTION)[window % 3]
    time_us = (START_MS + 2_000 * window) * 1_000
    expected = {"expected_price": "101.50"} if kind == AUCTION else {}
    log.add(TradingStatus(ISINS[window % 6], kind, time_us, **expected), time_us)


def trade_window(driver: ThrottleDriver, window: int) -> None:
    """Have one to three trades of most instruments in a window, and close it.

    Now and then the last one has a late trade alone, and the trade that is shown of the
    one before it is taken back.
    """
    begin_ms, is_late, is_back = 2_000 * window, window % 3 == 2, window % 5 == 4
    trading = [
        *ISINS[window % 2 : 4],
        *(ISINS[4:5] if not is_back else ()),
        *(ISINS[5:] if not is_late else ()),
    ]
    for n in range(window % 3 + 1):
        price, seq = f"{100 + (window + n) % 7}.50", 10 * window + n
        for isin in trading:
            at_ms = begin_ms + 100 * n
            driver.trade(isin, price, at_ms=at_ms, seq=seq, size=f"{n + 1}.5")
    late_ms = max(0, begin_ms - 3_000)
    driver.trade(ISINS[5], "99", at_ms=begin_ms + 900, time_ms=late_ms, seq=9)
    if is_back:
        shown = 10 * (window - 1) + (window - 1) % 3
        driver.cancel(ISINS[4], shown, at_ms=begin_ms + 950)
    driver.turn_clock(begin_ms + 2_000)
