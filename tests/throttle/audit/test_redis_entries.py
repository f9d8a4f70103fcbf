"""The past of a log on Redis Streams, from a real server."""

from collections.abc import Iterator

import pytest
import redis

from ingest.tradelog.contract import LogUnusable
from throttle.audit.log_entries import RedisLogEntries, open_log_entries
from throttle.audit.reconcile import EntryCount
from throttle.testing.driver import START_MS, ThrottleDriver

pytestmark = pytest.mark.redis
W = 2_000
A = "KR7005930003"


@pytest.fixture
def driver(redis_url: str) -> Iterator[ThrottleDriver]:
    """A job over a log of two partitions."""
    with ThrottleDriver(redis_url=redis_url, partitions=2) as started:
        yield started


@pytest.fixture
def log(client: redis.Redis, driver: ThrottleDriver) -> RedisLogEntries:
    """The past of the driver's log."""
    found = open_log_entries(client, "tt")
    assert isinstance(found, RedisLogEntries)
    return found


def trade(driver: ThrottleDriver, count: int) -> list[int]:
    """Append trades to partition 1; return their positions."""
    return [driver.trade(A, "1", at_ms=n, seq=n, partition=1) for n in range(count)]


def test_a_partition_is_counted_from_its_first_mark_to_its_end(
    driver: ThrottleDriver, log: RedisLogEntries
) -> None:
    """One without marks from its beginning, one that is not there yet as empty."""
    places = trade(driver, 5)
    found = log.count({0: [0], 1: [places[1], places[3]]})
    assert found[0] == EntryCount(0, -1, False, 0, {0: 0})
    assert found[1] == EntryCount(0, -1, False, 3, {places[1]: 0, places[3]: 2})
    assert log.count({1: []})[1].entries == 5


def test_what_was_trimmed_is_counted_by_the_server(
    client: redis.Redis, driver: ThrottleDriver, log: RedisLogEntries
) -> None:
    """A part of it, or all."""
    places = trade(driver, 5)
    client.xtrim("tt:log:1", maxlen=2, approximate=False)
    found = log.count({1: [0, places[3]]})[1]
    assert found == EntryCount(3, places[3] - 1, False, 2, {0: 0, places[3]: 1})
    client.xtrim("tt:log:1", maxlen=0, approximate=False)
    assert log.count({1: [0]})[1] == EntryCount(5, places[4], False, 0, {0: 0})


class TrimmedMeanwhile(redis.Redis):
    """A connection that trims before it reads, so many times."""

    times = 0

    def xinfo_stream(self, *args: object, **kwargs: object) -> object:
        """Look, and have somebody else trim at once."""
        found = super().xinfo_stream(*args, **kwargs)
        if self.times:
            self.times -= 1
            length = self.xlen("tt:log:1")
            self.xtrim("tt:log:1", maxlen=length - 1, approximate=False)
        return found


def test_a_partition_that_is_trimmed_meanwhile_is_counted_again(
    redis_url: str, driver: ThrottleDriver, log: RedisLogEntries
) -> None:
    """What is counted was there at one moment."""
    trade(driver, 30)
    with TrimmedMeanwhile.from_url(redis_url) as client:
        past = RedisLogEntries(client, "tt", log.info)
        client.times = 3
        found = past.count({1: [0]})[1]
        assert (found.gone, found.entries) == (3, 27)
        client.times = 100
        with pytest.raises(LogUnusable, match="tt:log:1: loses entries faster"):
            past.count({1: [0]})


def test_a_moment_is_a_place_in_every_partition(
    driver: ThrottleDriver, log: RedisLogEntries
) -> None:
    """A position carries its time; the place before the very first one is one, too."""
    places = trade(driver, 3)
    after = log.positions_before(START_MS + 1, [0, 1])
    assert [e.position for e in log.trades([0, 1], after)] == places[1:]
    assert [e.position for e in log.trades([1], {1: -1})] == places
    assert log.append_ms(1, places[2]) == START_MS + 2
