"""What is looked for in the log, and how much of it is read at most."""

import pytest
import redis

from ingest.tradelog.contract import partition_of
from tests.logged import logged_in_redis
from tests.throttle.testing.tapes import W
from throttle.standing import entry_budget
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
A, B = "KR7005930003", "KR7000660001"
HOUR_MS = 3_600_000


def fields(driver: ThrottleDriver, isin: str = A) -> dict[str, str]:
    """Return what the newest window says of an instrument."""
    return driver.windows()[-1].fields(isin)


def test_the_trade_that_is_shown(redis_url: str) -> None:
    """The newest one that stands is shown, and nothing was traded in the window."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.trade(A, "99", at_ms=2_100, seq=2)
        driver.turn_clock(2 * W)
        driver.cancel(A, 2, at_ms=4_100)
        driver.turn_clock(3 * W)
        shown = fields(driver)
        assert (shown["price"], shown["revision"], shown["trades"]) == ("70", "1", 0)
        driver.trade(A, "71", at_ms=6_100, seq=3)
        driver.turn_clock(4 * W)
        # From then on, all of the instrument's items are of that revision.
        assert (fields(driver)["price"], fields(driver)["revision"]) == ("71", "1")
        assert driver.ledger().total.taken_back == 1


def test_one_that_is_the_only_one_stays_shown(redis_url: str) -> None:
    """There is no other price; the day is empty."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.turn_clock(W)
        driver.cancel(A, 1, at_ms=2_100)
        driver.turn_clock(2 * W)
        assert fields(driver)["price"] == "70"
        day = driver.updates()[-1].rows[A].day
        assert day.endswith(b",0,0,0,,,")


def test_a_day_is_begun_by_trades_alone(redis_url: str) -> None:
    """What is taken back after midnight leaves the day before, which is shown on."""
    midnight_ms = 15 * HOUR_MS
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.trade(A, "99", at_ms=200, seq=2)
        driver.turn_clock(W)
        driver.cancel(A, 2, at_ms=midnight_ms + 100)
        driver.turn_clock(midnight_ms + W)
        before = START_MS + midnight_ms - 24 * HOUR_MS
        day = driver.updates()[-1].rows[A].day
        assert day == b"!%d,1,1,70,70,70,70" % before
        driver.trade(A, "71", at_ms=midnight_ms + W, seq=3)
        driver.turn_clock(midnight_ms + 2 * W)
        begun = START_MS + midnight_ms
        assert driver.updates()[-1].rows[A].day == b"!%d,1,1,71,71,71,71" % begun


def test_one_that_the_log_has_twice_is_taken_back_twice(redis_url: str) -> None:
    """As after a feed's second attempt, however far apart the two are."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "99", at_ms=100, seq=1)
        driver.turn_clock(W)
        driver.trade(A, "99", at_ms=15_000, time_ms=100, seq=1)
        driver.trade(A, "70", at_ms=29_000, seq=2)
        driver.cancel(A, 1, at_ms=30_100)
        driver.turn_clock(32_000)
        assert driver.ledger().total.taken_back == 2
        assert driver.updates()[-1].rows[A].day.endswith(b",1,1,70,70,70,70")


def test_of_one_number_the_newest_trade_is_taken_back(redis_url: str) -> None:
    """Another one of that number was appended later, and is older."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "99", at_ms=100, seq=1)
        driver.turn_clock(W)
        driver.trade(A, "70", at_ms=9_000, time_ms=50, seq=1)
        driver.trade(A, "71", at_ms=9_100, seq=2)
        driver.cancel(A, 1, at_ms=10_100)
        driver.turn_clock(12_000)
        assert driver.ledger().total.taken_back == 1
        assert driver.updates()[-1].rows[A].day.endswith(b",2,2,141,71,70,70")


def test_a_target_that_was_never_there(redis_url: str) -> None:
    """It is counted, and nothing is said to anybody."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.cancel(A, 5, at_ms=200)
        driver.cancel(B, 1, at_ms=200)
        driver.turn_clock(W)
        driver.cancel(A, 5, at_ms=2_100)
        driver.turn_clock(2 * W)
        first, second = driver.windows()
        assert (first.prices(), second.rows) == ({A: "70"}, {})
        assert driver.ledger().total.unknown_target == 3
        assert driver.ledger().total.skipped == {"cancel": 3}


def test_what_a_job_began_behind_is_an_unknown_target(redis_url: str) -> None:
    """It never counted the trade, in this run or in one before: its day has others."""
    with ThrottleDriver(redis_url=redis_url) as before:
        before.trade(A, "70", at_ms=100, seq=1)
        before.trade(A, "99", at_ms=200, seq=2, size="9")
    late = {"job": "late", "start": "latest", "start_ms": START_MS + W}
    with ThrottleDriver(redis_url=redis_url, **late) as driver:
        driver.trade(A, "72", at_ms=100, seq=3)
        driver.turn_clock(W)
        driver.restart_job()
        driver.cancel(A, 2, at_ms=2_100)
        driver.turn_clock(2 * W)
        total = driver.ledger().total
        assert (total.taken_back, total.unknown_target) == (0, 1)
        assert driver.windows()[-1].rows == {}


def test_one_of_long_ago(redis_url: str) -> None:
    """The log is read back to it, in ever longer steps."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.trade(A, "99", at_ms=200, seq=2)
        driver.turn_clock(W)
        driver.trade(B, "5", at_ms=5 * HOUR_MS, seq=1)
        driver.turn_clock(5 * HOUR_MS + W)
        driver.cancel(A, 2, at_ms=5 * HOUR_MS + W)
        driver.turn_clock(5 * HOUR_MS + 2 * W)
        assert fields(driver)["price"] == "70"


def test_one_that_the_log_does_not_hold_any_more(
    redis_url: str, client: redis.Redis
) -> None:
    """It is an unknown target; what is left is shown on."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        driver.trade(A, "99", at_ms=2_100, seq=2)
        driver.turn_clock(2 * W)
        [p] = {one.partition for one in logged_in_redis(client)}
        client.xtrim(f"tt:log:{p}", maxlen=0, approximate=False)
        driver.cancel(A, 2, at_ms=4_100)
        driver.turn_clock(3 * W)
        assert driver.windows()[-1].rows == {}
        assert driver.ledger().total.unknown_target == 1


def test_what_is_beyond_the_bound_is_an_unknown_target(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window does not wait for longer than so many entries take to be read."""
    monkeypatch.setattr(entry_budget, "MOST_ENTRIES", 0)
    monkeypatch.setattr(entry_budget, "LEAST_ENTRIES", 20)
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=0, seq=1)
        driver.turn_clock(W)
        for seq in range(2, 30):
            driver.trade(A, "71", at_ms=90_000, seq=seq)
        driver.turn_clock(90_000 + W)
        driver.cancel(A, 1, at_ms=90_000 + W)
        driver.turn_clock(90_000 + 2 * W)
        total = driver.ledger().total
        assert (total.taken_back, total.unknown_target) == (0, 1)
        assert driver.ledger().problems() == []


def test_after_a_pause_no_more_is_read_than_may_be(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor what came since the days were asked for last: they stay as they are."""
    monkeypatch.setattr(entry_budget, "MOST_ENTRIES", 0)
    monkeypatch.setattr(entry_budget, "LEAST_ENTRIES", 60)
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=0, seq=1)
        driver.trade(A, "99", at_ms=10, seq=2)
        driver.cancel(A, 2, at_ms=20)
        driver.turn_clock(W)
        for seq in range(3, 203):
            driver.trade(A, "71", at_ms=90_000, seq=seq)
        driver.turn_clock(90_000 + W)
        driver.trade(A, "60", at_ms=90_000 + W, seq=300)
        driver.cancel(A, 300, at_ms=90_010 + W)
        driver.turn_clock(90_000 + 2 * W)
        assert driver.ledger().total.taken_back == 2
        # The price that was taken back is the day's lowest, as far as is known.
        assert driver.updates()[-1].rows[A].day.endswith(b",201,14270,71,60,70")


def test_a_name_that_is_written_with_escapes_is_found(redis_url: str) -> None:
    """The log is searched for the name as text before anything is read."""
    with ThrottleDriver(redis_url=redis_url) as driver:
        driver.trade(A, "70", at_ms=100, seq=1)
        time_us = (START_MS + 200) * 1_000
        odd = f'{{"isin":"\\u004bR7005930003","time":{time_us},"seq":2'
        partition = partition_of(A, driver.partitions)
        payload = f'{odd},"price":"99","size":"1"}}'.encode()
        driver.payload(payload, at_ms=200, partition=partition)
        driver.turn_clock(W)
        assert fields(driver)["price"] == "99"
        driver.cancel(A, 2, at_ms=2_100)
        driver.turn_clock(2 * W)
        assert fields(driver)["price"] == "70"
