"""A gateway with windows that never end, for the kit to judge."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread

import redis

from tests.conftest import PATIENCE
from tests.gateway.publisher import load_instruments
from tests.gateway.samples import make_isins
from tests.gateway.servers import running_gateway
from throttle.testing.driver import ThrottleDriver

ISINS = make_isins(6)
HEARTBEAT_MS = 200 * int(PATIENCE)


@contextmanager
def served(redis_url: str) -> Iterator[str]:
    """Serve windows of the job's own making, some ten a second; yield the address.

    Six instruments trade, with late trades and some that are taken back.
    """
    is_over = Event()
    listed = "".join(f"{isin},{at:06},KOSPI\n" for at, isin in enumerate(ISINS))
    with redis.Redis.from_url(redis_url) as client:
        load_instruments(client, f"isin,code,market\n{listed}")
    with ThrottleDriver(redis_url=redis_url) as driver:
        trade_window(driver, 0)

        def publish_on() -> None:
            for window in count(1):
                if is_over.wait(0.1):
                    return
                trade_window(driver, window)

        thread = Thread(target=publish_on)
        with running_gateway(redis_url, heartbeat_ms=HEARTBEAT_MS) as gateway:
            gateway.wait_for("reloads")
            thread.start()
            try:
                yield f"ws://{gateway.host}:{gateway.port}/v1/stream"
            finally:
                is_over.set()
                thread.join()


def trade_window(driver: ThrottleDriver, window: int) -> None:
    """Have one to three trades of each instrument in a window, and close it."""
    begin_ms = 2_000 * window
    for n in range(window % 3 + 1):
        price, seq = f"{100 + (window + n) % 7}.50", 10 * window + n
        for isin in ISINS[window % 2 :]:
            at_ms = begin_ms + 100 * n
            driver.trade(isin, price, at_ms=at_ms, seq=seq, size=f"{n + 1}.5")
    late_ms = max(0, begin_ms - 3_000)
    driver.trade(ISINS[5], "99", at_ms=begin_ms + 900, time_ms=late_ms, seq=9)
    if window % 5 == 4:
        driver.cancel(ISINS[4], 10 * window, at_ms=begin_ms + 950)
    driver.turn_clock(begin_ms + 2_000)
