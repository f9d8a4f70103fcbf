"""Reading the window log."""

from collections.abc import AsyncIterator

import pytest
import redis
from redis.asyncio import Redis

from gateway.upstream.redis_client import create_redis
from gateway.upstream.window_log import WindowLog
from tests.gateway.publisher import Publisher
from tests.gateway.samples import FIRST_WINDOW, WINDOW_MS, make_row

pytestmark = pytest.mark.redis


@pytest.fixture
async def connection(redis_url: str) -> AsyncIterator[Redis]:
    """A connection to an empty server."""
    connection = create_redis(redis_url)
    yield connection
    await connection.aclose()


@pytest.fixture
def window_log(connection: Redis, publisher: Publisher) -> WindowLog:
    """The log of the publisher."""
    return WindowLog(connection, publisher.keys)


def end_ms(offset: int) -> int:
    """Return the end of the window with an offset."""
    return FIRST_WINDOW + offset * WINDOW_MS


async def test_windows_between_two_offsets(
    window_log: WindowLog, publisher: Publisher
) -> None:
    """Both ends are included, and windows come back equal."""
    published = [publisher.publish(make_row(seq=n)) for n in range(1, 6)]
    assert await window_log.between(2, 4) == published[1:4]
    assert await window_log.between(6, 9) == []
    assert await window_log.until(4, 2) == [published[3], published[2]]
    assert await window_log.until(1, 9) == published[:1]


async def test_the_newest_windows_within_bounds(
    window_log: WindowLog, publisher: Publisher
) -> None:
    """Bounds are the windows' ends, both included; newest first."""
    for _ in range(9):
        publisher.publish()
    for first, last, limit, offsets in [
        (None, None, 3, [9, 8, 7]),
        (None, 5, 2, [5, 4]),
        (4, 5, 9, [5, 4]),
        (8, None, 9, [9, 8]),
        (None, 99, 1, [9]),
        (None, 1, 9, [1]),
        (None, 0, 9, []),
        (7, 5, 9, []),
    ]:
        from_ms = None if first is None else end_ms(first)
        to_ms = None if last is None else end_ms(last) + (1 if last else 0)
        windows = [w async for w in window_log.newest(limit, from_ms, to_ms)]
        assert [window.offset for window in windows] == offsets


async def test_a_log_that_has_lost_its_beginning_is_searched_all_the_same(
    window_log: WindowLog, publisher: Publisher, client: redis.Redis
) -> None:
    """The log is bounded: its first offset is not 1 for long."""
    for _ in range(20):
        publisher.publish()
    client.xtrim(publisher.keys.windows, minid="9-0", approximate=False)
    assert [w.offset async for w in window_log.newest(9, to_ms=end_ms(10))] == [10, 9]
    assert [w async for w in window_log.newest(9, to_ms=end_ms(8))] == []


async def test_windows_of_several_jobs_are_within_the_bounds(
    window_log: WindowLog, publisher: Publisher
) -> None:
    """Parts of a window are all there, and none that ends later."""
    for _ in range(4):
        publisher.publish()
        publisher.publish_part()
        publisher.publish_part(windows_behind=2)
    wanted = end_ms(publisher.offset - 5)
    found = [w async for w in window_log.newest(99, wanted, wanted)]
    assert {window.window for window in found} == {wanted}
    assert len(found) >= 2


async def test_an_empty_log_has_no_windows(window_log: WindowLog) -> None:
    """Nothing was published yet, whatever is asked."""
    assert [w async for w in window_log.newest(5)] == []
    assert [w async for w in window_log.newest(5, to_ms=1)] == []


async def test_an_entry_of_someone_else_is_refused(
    window_log: WindowLog, publisher: Publisher, client: redis.Redis
) -> None:
    """A stream that holds something else is not read as windows."""
    client.xadd(publisher.keys.windows, {"other": "1"}, id="1-0")
    with pytest.raises(ValueError, match="window log entry"):
        await window_log.between(1, 1)
