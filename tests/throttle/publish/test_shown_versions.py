"""Stale rows, foreseen: no publish is tried twice for them."""

import pytest
import redis

from ingest.instrument_table.instrument_entry import InstrumentEntry
from throttle.testing.driver import ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A, B = "KR7005930003", "KR7000660001"


def scripts_run(client: redis.Redis) -> int:
    """Return how many scripts the server has run."""
    return int(client.info("commandstats")["cmdstat_evalsha"]["calls"])


def test_a_stale_row_costs_no_second_publish(redis_url: str) -> None:
    """Also the first time after a restart, of an instrument new to the new job."""
    with (
        redis.Redis.from_url(redis_url) as client,
        ThrottleDriver(redis_url=redis_url, instruments=[InstrumentEntry(A)]) as driver,
    ):
        driver.trade(A, "1", at_ms=1, time_ms=500)
        driver.trade(B, "1", at_ms=1, time_ms=500)
        driver.turn_clock(W)
        for number in (1, 2):
            driver.trade(A, "2", at_ms=number * W, time_ms=100)
            before = scripts_run(client)
            driver.turn_clock((number + 1) * W)
            assert scripts_run(client) == before + 1
            driver.restart_job()
        assert [window.prices() for window in driver.windows()] == [
            {A: "1", B: "1"},
            {A: "1"},
            {A: "1"},
        ]
        assert driver.ledger().total.stale == 2
        for window in driver.windows()[1:]:
            assert {group["instruments"] for group in window.groups.values()} == {"0"}
