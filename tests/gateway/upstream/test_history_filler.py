"""The history is filled from the stream and from the window log."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import redis
from redis.asyncio import Redis

from gateway.stream.board import Position
from gateway.upstream import history_filler
from gateway.upstream.history_filler import HistoryFiller
from gateway.upstream.instrument_history import InstrumentHistory
from gateway.upstream.redis_client import create_redis
from gateway.upstream.window_log import WindowLog
from ingest.redis_keys import Keys
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, FIRST_WINDOW, SAMSUNG, make_row, make_snapshot

pytestmark = pytest.mark.redis


class Filled:
    """A history, and the historian that fills it."""

    def __init__(self, redis: Redis) -> None:
        self.history = InstrumentHistory(100_000)
        self.historian = HistoryFiller(self.history, WindowLog(redis, Keys("tt")))

    async def reaches(self, *offsets: int) -> None:
        """Wait until the history holds the windows with these offsets."""
        wanted = list(offsets)
        await asyncio.to_thread(eventually, lambda: self.offsets() == wanted)

    def offsets(self) -> list[int]:
        """Return which windows the history holds."""
        points = list(self.history.newest_first(SAMSUNG))[::-1]
        return [(p.window - FIRST_WINDOW) // 2_000 for p in points]


@pytest.fixture
async def filled(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Filled]:
    """A historian at work, without its pauses."""
    monkeypatch.setattr(history_filler, "FAN_OUT_S", 0)
    monkeypatch.setattr(history_filler, "RETRY_S", 0.01)
    connection = create_redis(redis_url)
    found = Filled(connection)
    task = asyncio.create_task(found.historian.run())
    yield found
    task.cancel()
    await asyncio.wait([task])
    await connection.aclose()


async def test_it_begins_with_what_the_log_holds(
    filled: Filled, publisher: Publisher
) -> None:
    """Up to the position the stream goes on from, more than one read of them."""
    for seq in range(1, 21):
        publisher.publish(make_row(seq=seq))
    filled.historian.restart(Position(EPOCH, 19, None))
    filled.historian.follow(make_snapshot(20, make_row(seq=20)))
    await filled.reaches(*range(1, 21))
    filled.historian.follow(make_snapshot(21, make_row(seq=21)))
    await filled.reaches(*range(1, 22))


async def test_another_epoch_is_another_history(
    filled: Filled, publisher: Publisher
) -> None:
    """Windows of the one before are not looked at."""
    for seq in range(1, 4):
        publisher.publish(make_row(seq=seq))
    filled.historian.restart(Position(EPOCH, 3, None))
    await filled.reaches(1, 2, 3)
    filled.historian.restart(Position("other", 3, None))
    filled.historian.follow(make_snapshot(4, make_row(seq=4), epoch="other"))
    await filled.reaches(4)


async def test_after_an_outage_each_window_has_its_point(
    filled: Filled, publisher: Publisher
) -> None:
    """The one message for all of them is taken apart, if the log still holds them."""
    filled.historian.restart(Position(EPOCH, 0, None))
    rows = [[make_row(seq=seq)] for seq in range(1, 4)]
    message = publisher.publish_outage(*rows)
    filled.historian.follow(message)
    await filled.reaches(1, 2, 3)
    gone = make_snapshot(9, make_row(seq=9), windows=6)
    filled.historian.follow(gone)
    await filled.reaches(1, 2, 3, 9)


async def test_it_stops_looking_back_when_it_is_full(
    filled: Filled, publisher: Publisher
) -> None:
    """The newest windows are the ones that are kept."""
    filled.history._max_bytes = 2_000
    for seq in range(1, 10):
        publisher.publish(make_row(seq=seq))
    filled.historian.restart(Position(EPOCH, 9, None))
    await filled.reaches(7, 8, 9)


async def test_a_log_of_someone_else_stops_nothing(
    filled: Filled, client: redis.Redis
) -> None:
    """What comes is taken in, in one piece where the log cannot be read."""
    client.xadd("tt:windows", {"other": "1"}, id="1-0")
    filled.historian.restart(Position(EPOCH, 1, None))
    filled.historian.follow(make_snapshot(3, make_row(seq=3), windows=3))
    await filled.reaches(3)


async def test_it_outlasts_a_server_that_is_away(
    filled: Filled, publisher: Publisher, client: redis.Redis
) -> None:
    """It asks again until it has an answer."""
    publisher.publish(make_row())
    client.set("kept", client.dump("tt:windows"))
    client.delete("tt:windows")
    client.set("tt:windows", "of another type")
    filled.historian.restart(Position(EPOCH, 1, None))
    filled.historian.follow(make_snapshot(2, make_row(seq=2)))
    await filled.reaches(2)
    client.delete("tt:windows")
    client.restore("tt:windows", 0, client.get("kept"))
    await filled.reaches(1, 2)
