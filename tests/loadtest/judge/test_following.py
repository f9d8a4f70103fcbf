"""Following a stream on a real server."""

import time
from collections.abc import Iterator

import pytest
import redis

from ingest.redis_keys import Keys
from loadtest.judge.following import (
    Follower,
    NoStream,
    following,
    read_standing,
)
from tests.conftest import eventually
from throttle.contract.trade_order import decode_version
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
A, B = "KR7005930003", "KR7000660001"


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    with ThrottleDriver(redis_url=redis_url) as made:
        made.trade(A, "1", at_ms=100)
        made.turn_clock(2_000)
        yield made


@pytest.fixture
def follower(redis_url: str, driver: ThrottleDriver) -> Iterator[Follower]:
    with following(redis_url, "tt", "throttle", 2_000) as found:
        yield found


def test_a_standing_is_all_of_one_moment(
    redis_url: str, driver: ThrottleDriver, client: redis.Redis
) -> None:
    """Epoch, offset, cut, books and board belong together."""
    standing = read_standing(client, "tt", "throttle")
    assert (standing.offset, standing.cut.end_ms) == (1, START_MS + 2_000)
    assert standing.ledger.total.read == 1
    assert standing.ledger.upto == standing.cut
    [shown] = standing.last.values()
    assert decode_version(shown.version)[0] == (START_MS + 100) * 1_000
    assert standing.others == ()
    client.hset(Keys("tt").meta, "cut:other", "{}")
    assert read_standing(client, "tt", "throttle").others == ("other",)
    with pytest.raises(NoStream, match="job none: has published nothing under tt:"):
        read_standing(client, "tt", "none")


def test_what_is_published_from_now_on_is_taken_in(
    driver: ThrottleDriver, follower: Follower
) -> None:
    """Every window once, also those of a batch with several, and the batches."""
    driver.trade(A, "2", at_ms=2_100)
    driver.trade(B, "3", at_ms=6_100)
    driver.turn_clock(8_000)
    assert follower.wait_for(START_MS + 8_000, within_s=10)
    assert [held.offset for held in follower.run.windows] == [2, 3, 4]
    assert [held.windows for held in follower.run.windows] == [1, 1, 1]
    assert sorted(follower.run.reference().instruments) == sorted([A, B])
    eventually(lambda: sum(batch.windows for batch in follower.batches) == 3)
    assert follower.faults == []
    assert not follower.wait_for(START_MS + 10_000, within_s=0)


def test_a_hole_in_the_window_log_is_a_fault(
    driver: ThrottleDriver, follower: Follower, client: redis.Redis
) -> None:
    client.xadd(Keys("tt").windows, {"snapshot": _window(follower, 3)}, id="3-0")
    assert follower.wait_for(START_MS + 6_000, within_s=10)
    [fault] = follower.faults
    assert fault == "offset 3: stands for 1 windows, the one before it was 1"


def test_what_is_no_window_and_no_batch_is_a_fault(
    driver: ThrottleDriver, follower: Follower, client: redis.Redis
) -> None:
    """Whatever somebody has written there; following goes on."""
    client.xadd(Keys("tt").batches("throttle"), {"batch": "x"}, id="1-1")
    client.xadd(Keys("tt").windows, {"other": "x"}, id="1-1")
    eventually(lambda: len(follower.faults) == 2)
    driver.turn_clock(4_000)
    assert follower.wait_for(START_MS + 4_000, within_s=10)


@pytest.mark.parametrize("is_gone", [True, False])
def test_a_stream_that_began_anew_is_a_fault(
    driver: ThrottleDriver, follower: Follower, client: redis.Redis, is_gone: bool
) -> None:
    """Also where nothing at all comes any more."""
    if is_gone:
        client.flushall()
        words = "is gone"
    else:
        client.hset(Keys("tt").meta, "epoch", "new")
        words = "began anew as new"
    eventually(lambda: len(follower.faults) == 1)
    assert words in follower.faults[0]


def test_a_connection_that_breaks_costs_no_window(
    driver: ThrottleDriver, follower: Follower, client: redis.Redis
) -> None:
    """What was published meanwhile is taken in afterwards."""
    client.client_kill_filter(_type="normal", skipme=True)
    driver.turn_clock(4_000)
    assert follower.wait_for(START_MS + 4_000, within_s=10)
    eventually(lambda: follower.faults == [])


def _window(follower: Follower, offset: int) -> str:
    end_ms, us = START_MS + 2_000 * offset, time.time_ns() // 1_000
    return (
        f'{{"epoch":"{follower.run.epoch}","offset":{offset},"window":{end_ms},'
        f'"windows":1,"published":{us}}}'
    )
