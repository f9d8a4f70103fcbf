"""Windows of a file are those that a job publishes of the same trades, as they come."""

import json

import pytest
import redis
from hypothesis import given, settings

from ingest.trade import Trade
from tests.examples import many
from tests.logged import logged_in_redis
from tests.throttle.standing.test_any_log import Step, append, tapes
from tests.throttle.testing.tapes import W, is_one_server
from throttle.backtest.file_windows import TimedEntries, windows_of
from throttle.contract.snapshot import Row
from throttle.testing.driver import START_MS, ThrottleDriver


def shown_by(rows: dict[str, Row]) -> dict[str, tuple[object, ...]]:
    """Return what rows show, without positions, which a file has of its own."""
    return {
        isin: (json.loads(row.body), row.sums, row.version[:-19])
        for isin, row in rows.items()
    }


@pytest.mark.redis
@settings(max_examples=many(60), suppress_health_check=is_one_server)
@given(tape=tapes)
def test_windows_are_those_of_a_job(
    tape: list[Step], redis_url: str, client: redis.Redis
) -> None:
    """With cancels, corrections, and trades that do not count, window by window."""
    client.flushall()
    at_ms = ended_ms = 0
    with ThrottleDriver(redis_url=redis_url) as driver:
        for step in tape:
            at_ms += step.after_ms
            # A live job has a window in each batch.
            while ended_ms + W <= at_ms:
                ended_ms += W
                driver.turn_clock(ended_ms)
            # The trades are there when they are made.
            append(driver, step._replace(late_ms=0), at_ms, 0)
        driver.turn_clock(ended_ms + W)
        windows = {w.end_ms: w.rows for w in driver.windows() if w.rows}
    log = sorted(logged_in_redis(client), key=lambda one: one.position)
    payloads = [(one.append_ms * 1_000, one.payload) for one in log]
    made = {
        window.window - START_MS: {row.isin: row for row in window.rows}
        for window in windows_of(TimedEntries(payloads), W)
        if window.rows
    }
    assert made.keys() == windows.keys()
    for end_ms, rows in windows.items():
        assert shown_by(made[end_ms]) == shown_by(rows)


def test_microseconds_are_in_their_window() -> None:
    """A trade in the last microsecond of a window is in that window."""
    start_us = START_MS * 1_000
    trades = [
        (t, Trade("KR7005930003", t, seq, "5", "1").to_wire())
        for seq, t in enumerate((start_us - 1, start_us, start_us + 1))
    ]
    windows = list(windows_of(TimedEntries(trades), W))
    ends = [(w.window - START_MS, w.rows[0].trades) for w in windows]
    assert ends == [(0, 1), (W, 2)]
