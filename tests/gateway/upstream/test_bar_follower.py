"""Bars: Redis -> desk -> clients, without a hole that nobody is told of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import redis

from gateway.settings import GatewaySettings
from gateway.stream.board import Board
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from gateway.upstream import bar_follower
from gateway.upstream.bar_follower import BarFollower
from gateway.upstream.redis_client import create_redis
from ingest.redis_keys import AnalyticsKeys
from tests.conftest import eventually
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, BarPublisher, make_bar
from tests.gateway.listener import Listener
from tests.gateway.samples import HYNIX, LISTED, SAMSUNG

pytestmark = pytest.mark.redis


async def soon(check: Callable[[], object]) -> None:
    """Wait until ``check`` is true, while the follower goes on."""
    await asyncio.to_thread(eventually, check)


@dataclass
class Rig:
    """A running follower, and the hub it tells."""

    hub: Hub
    counters: Counters
    redis: Any

    def join(self, *keys: str, **further: Any) -> Listener:
        """Have a client subscribe; its ack is taken."""
        listener = Listener(self.hub)
        command = {"op": "subscribe", "keys": keys, **further}
        ack = listener.client.commands.answer(_text(command), 0.0, 0)
        assert b'"rejected":[]' in ack, ack
        return listener

    async def frames(self, listener: Listener) -> list[dict[str, Any]]:
        """Wait for frames of bars and return them."""
        found: list[dict[str, Any]] = []
        await soon(lambda: found.extend(listener.frames()) or found)
        return found


def _text(command: dict[str, Any]) -> str:
    import json

    return json.dumps(command)


@pytest.fixture(autouse=True)
def _each_message_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have every message be of another window of the gateway's clock."""
    moments = iter(range(2_000, 10**9, 2_000))
    monkeypatch.setattr(bar_follower, "_now_ms", lambda: next(moments))


@asynccontextmanager
async def following(redis_url: str) -> AsyncIterator[Rig]:
    """Run a follower until the block ends."""
    counters, board = Counters(), Board()
    hub = Hub(board, GatewaySettings(), counters)
    hub.change_instruments(LISTED)
    connection = create_redis(redis_url)
    follower = BarFollower(connection, AnalyticsKeys("tt"), hub.bar_desk, counters)
    pump = asyncio.create_task(follower.run())
    try:
        yield Rig(hub, counters, connection)
    finally:
        pump.cancel()
        await asyncio.wait([pump])
        await connection.aclose()


@pytest.fixture
def bars(client: redis.Redis) -> BarPublisher:
    """A publisher of bars."""
    return BarPublisher(client)


def told(frames: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return interval, minute, close, closed of every bar in frames of bars."""
    return [
        (
            bar["interval"],
            (bar["start"] - FIRST_MS) // MINUTE_MS,
            bar["close"],
            bar["closed"],
        )
        for frame in frames
        for bar in frame["bars"]
    ]


async def test_nothing_is_asked_while_nobody_watches(
    bars: BarPublisher, redis_url: str, client: redis.Redis
) -> None:
    """Clients that do not ask for bars cost nothing, whatever is published."""
    async with following(redis_url) as rig:
        Listener(rig.hub).subscribe("*")
        bars.publish(make_bar())
        channel = bars.keys.updates("bars")
        await asyncio.sleep(0.05)
        assert client.pubsub_numsub(channel)[0][1] == 0
        assert rig.counters.bar_reloads == 0
        rig.join("bars:1m:*")
        await soon(lambda: client.pubsub_numsub(channel)[0][1] == 1)


async def test_a_bar_is_told_open_closed_and_amended(
    bars: BarPublisher, redis_url: str
) -> None:
    """First what there is, then each change; a late trade brings a revision."""
    bars.publish(make_bar(trades=4))
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:005930")
        (snapshot,) = await rig.frames(listener)
        assert snapshot["snapshot"]
        assert snapshot["final"]
        assert told([snapshot]) == [("1m", 0, 110, False)]
        bars.publish(make_bar(trades=5, prices="100 120 90 111"))
        assert told(await rig.frames(listener)) == [("1m", 0, 111, False)]
        bars.publish(make_bar(trades=5, prices="100 120 90 111", closed=True))
        assert told(await rig.frames(listener)) == [("1m", 0, 111, True)]
        late = make_bar(trades=6, prices="100 130 90 111", closed=True, revision=1)
        bars.publish(late)
        (frame,) = await rig.frames(listener)
        (bar,) = frame["bars"]
        assert (bar["high"], bar["revision"], bar["trades"]) == (130, 1, 6)
        assert rig.counters.bar_reloads == 1


async def test_longer_bars_are_folded(bars: BarPublisher, redis_url: str) -> None:
    """Of parts that were there before, and of those that come; amended with them."""
    bars.publish(make_bar(minute=0, closed=True, volume="10"))
    async with following(redis_url) as rig:
        listener = rig.join("bars:5m:KR7005930003", last=3)
        assert told(await rig.frames(listener)) == [("5m", 0, 110, False)]
        bars.publish(
            make_bar(minute=1, prices="110 150 80 140", volume="5", closed=True)
        )
        (frame,) = await rig.frames(listener)
        (bar,) = frame["bars"]
        assert [bar[n] for n in ("open", "high", "low", "close")] == [100, 150, 80, 140]
        assert (bar["volume"], bar["trades"]) == (15, 8)
        # The clock alone closes it: nothing was traded in the last minutes.
        bars.publish(clock_ms=FIRST_MS + 5 * MINUTE_MS)
        assert told(await rig.frames(listener)) == [("5m", 0, 140, True)]
        # A late trade in the first minute, long after.
        bars.publish(make_bar(minute=7))
        await rig.frames(listener)
        late = make_bar(minute=0, trades=5, volume="12", closed=True, revision=1)
        bars.publish(late)
        (frame,) = await rig.frames(listener)
        (bar,) = frame["bars"]
        assert (bar["start"], bar["volume"], bar["revision"]) == (FIRST_MS, 17, 1)


@pytest.mark.parametrize("key", ["bars:5m:KR7005930003", "bars:5m:*"])
async def test_a_longer_bar_of_a_snapshot_is_closed_by_its_end(
    bars: BarPublisher, redis_url: str, key: str
) -> None:
    """Though nothing is traded any more; who was away meanwhile hears of it, too."""
    bars.publish(make_bar(minute=0, closed=True), clock_ms=FIRST_MS + 2 * MINUTE_MS)
    async with following(redis_url) as rig:
        listener = rig.join(key)
        (frame,) = await rig.frames(listener)
        assert told([frame]) == [("5m", 0, 110, False)]
        since = {"epoch": frame["epoch"], "sequence": frame["sequence"]}
        bars.publish(clock_ms=FIRST_MS + 4 * MINUTE_MS)
        bars.publish(clock_ms=FIRST_MS + 5 * MINUTE_MS)
        assert told(await rig.frames(listener)) == [("5m", 0, 110, True)]
        bars.publish(make_bar(minute=6), clock_ms=FIRST_MS + 6 * MINUTE_MS)
        await rig.frames(listener)
        (again,) = await rig.frames(rig.join(key, bars_since=since))
        assert again["resumed"]
        expected = [("5m", 0, 110, True), ("5m", 5, 110, False)]
        assert sorted(told([again])) == expected


async def test_the_day_is_told_and_closed_by_the_next(
    bars: BarPublisher, redis_url: str
) -> None:
    """At midnight in Seoul another day begins."""
    bars.publish(make_bar(minute=1))
    async with following(redis_url) as rig:
        listener = rig.join("bars:1d:*")
        (first,) = (await rig.frames(listener))[0]["bars"]
        assert (first["end"] - first["start"], first["closed"]) == (86_400_000, False)
        # 15 hours later it is midnight in Seoul.
        bars.publish(make_bar(minute=15 * 60, prices="200 200 200 200"))
        days = (await rig.frames(listener))[0]["bars"]
        assert [(day["open"], day["closed"]) for day in days] == [
            (100, True),
            (200, False),
        ]
        assert days[1]["start"] == days[0]["end"] == first["end"]


async def test_a_lost_message_is_noticed_and_told(
    bars: BarPublisher, redis_url: str
) -> None:
    """Whoever watches bars gets the newest anew, and is told that some are missing."""
    bars.publish(make_bar())
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*")
        await rig.frames(listener)
        bars.publish(make_bar(trades=5), is_lost=True)
        bars.publish(make_bar(HYNIX))
        (frame,) = await rig.frames(listener)
        assert frame["snapshot"]
        assert frame["resumed"] is False
        assert {bar["isin"]: bar["trades"] for bar in frame["bars"]} == {
            SAMSUNG: 5,
            HYNIX: 4,
        }
        assert rig.counters.bar_reloads == 2
        assert frame["sequence"] == 3


async def test_what_is_no_message_ends_nothing(
    bars: BarPublisher, redis_url: str
) -> None:
    """It is counted, and the next one is told."""
    bars.publish(make_bar())
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*")
        await rig.frames(listener)
        bars.spoil()
        bars.repeat(bars.publish(make_bar(trades=6)))
        (frame,) = await rig.frames(listener)
        assert frame["bars"][0]["trades"] == 6
        assert rig.counters.bar_messages_undecodable == 1


async def test_a_client_that_returns_gets_what_has_changed(
    bars: BarPublisher, redis_url: str
) -> None:
    """While the gateway has kept all since; else everything, and it is told so."""
    bars.publish(make_bar())
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*", "bars:5m:*")
        (frame, *_) = await rig.frames(listener)
        since = {"epoch": frame["epoch"], "sequence": frame["sequence"]}
        bars.publish(make_bar(minute=0, trades=9, closed=True))
        bars.publish(make_bar(minute=1))
        await soon(lambda: rig.hub.bar_desk.position.sequence == 3)
        again = rig.join("bars:1m:*", "bars:5m:*", bars_since=since)
        (frame,) = await rig.frames(again)
        assert frame["resumed"]
        assert sorted(told([frame])) == [
            ("1m", 0, 110, True),
            ("1m", 1, 110, False),
            ("5m", 0, 110, False),
        ]
        strange = {"epoch": "other", "sequence": 1}
        other = rig.join("bars:1m:*", bars_since=strange)
        (frame,) = await rig.frames(other)
        assert not frame["resumed"]


async def test_another_epoch_is_read_anew(
    bars: BarPublisher, redis_url: str, client: redis.Redis
) -> None:
    """Redis was emptied: what comes then is another numbering."""
    bars.publish(make_bar())
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*")
        await rig.frames(listener)
        client.flushall()
        later = BarPublisher(client, epoch="b9")
        later.publish(make_bar(HYNIX))
        (frame,) = await rig.frames(listener)
        assert (frame["epoch"], frame["snapshot"]) == ("b9", True)
        assert [bar["isin"] for bar in frame["bars"]] == [HYNIX]


async def test_following_ends_when_nobody_watches(
    bars: BarPublisher,
    redis_url: str,
    client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a while, and begins again with the next who asks."""
    monkeypatch.setattr(bar_follower, "LINGER_S", 0.0)
    bars.publish(make_bar())
    channel = bars.keys.updates("bars")
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*")
        await rig.frames(listener)
        rig.hub.leave(listener.client)
        await soon(lambda: client.pubsub_numsub(channel)[0][1] == 0)
        bars.publish(make_bar(trades=8))
        later = rig.join("bars:1m:*")
        (frame,) = await rig.frames(later)
        assert (frame["sequence"], frame["bars"][0]["trades"]) == (2, 8)


async def test_without_an_analytics_job_there_are_no_bars(redis_url: str) -> None:
    """A client is told so by an empty snapshot, and waits."""
    async with following(redis_url) as rig:
        listener = rig.join("bars:1m:*")
        (frame,) = await rig.frames(listener)
        assert (frame["epoch"], frame["bars"]) == (None, [])
