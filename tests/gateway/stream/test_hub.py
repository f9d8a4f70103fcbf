"""The hub: publishing hands out work and waits for nobody."""

import asyncio
import itertools
import json
import time
from collections.abc import Iterable
from typing import Any

import pytest

from gateway.admission.bounds import BOUNDS, Bounds
from gateway.admission.work import BURST_S
from gateway.settings import GatewaySettings
from gateway.stream.client import Ending
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from gateway.stream.pending_rows import AT_ONCE
from tests.gateway.listener import Listener
from tests.gateway.samples import (
    SAMSUNG,
    make_board,
    make_isins,
    make_row,
    make_snapshot,
    make_update,
)
from tickthrottle_client.tick_v1 import CloseCode


def make_hub(bounds: Bounds = BOUNDS, **settings: Any) -> Hub:
    """Return a hub on a board with one instrument."""
    chosen = GatewaySettings.model_validate(settings)
    return Hub(make_board(make_row()), chosen, Counters(), bounds=bounds)


def join(hub: Hub, *keys: str, now_s: float = 0.0) -> Listener:
    """Return a client that watches the keys and has its snapshot already."""
    listener = Listener(hub, now_s)
    if keys:
        listener.subscribe(*keys)
    return listener


def publish(hub: Hub, seq: int, isins: Iterable[str] = (SAMSUNG,)) -> None:
    """Publish a window with newer rows."""
    board = hub.board
    rows = [make_row(isin, seq=seq) for isin in isins]
    news = board.apply(make_snapshot(board.position.offset + 1, *rows))
    hub.publish(make_update(board, news))


async def test_clients_with_the_same_view_are_sent_the_same_object() -> None:
    """A frame is built once for all of them."""
    hub = make_hub()
    first, second = join(hub, SAMSUNG), join(hub, SAMSUNG)
    publish(hub, 2)
    frame = first.next_frame()
    assert frame is not None
    assert frame is second.next_frame()
    assert len(hub) == 2


@pytest.mark.parametrize("key", [SAMSUNG, f"bars:1m:{SAMSUNG}", f"trades:{SAMSUNG}"])
async def test_who_has_been_sent_away_leaves_nothing_behind(key: str) -> None:
    """Neither by what waited for its turn, nor by what it said at the last moment."""
    hub = make_hub()
    waiting, late = join(hub), join(hub)
    # Some milliseconds after the share of half a second is used up.
    hub.turns.charge(waiting.client.commands.payers, 0.16)
    turn = asyncio.create_task(hub.wait_turn(waiting.client))
    await asyncio.sleep(0)
    for listener in (waiting, late):
        hub.end(listener.client, CloseCode.OVERLOADED, "too much")
    assert not await turn
    late.subscribe(key)
    assert late.client.commands.answer('{"op":"list"}', 0.0, 0).count(key.encode())
    hub.leave(late.client)
    hub.leave(late.client)
    assert (
        json.loads(late.client.commands.answer('{"op":"list"}', 0.0, 0))["accepted"]
        == []
    )
    assert not hub.trade_desk.isins


async def test_only_clients_with_news_are_woken() -> None:
    """A window of other instruments costs a client nothing."""
    hub = make_hub()
    watching, idle = join(hub, SAMSUNG), join(hub)
    publish(hub, 2)
    assert await watching.is_woken()
    assert not idle.woken.is_set()


async def test_a_client_that_has_much_to_fold_takes_several_turns() -> None:
    """It is woken when all is folded; another one need not wait for that."""
    hub, isins = make_hub(), make_isins(3 * AT_ONCE)
    slow = join(hub, "*")
    publish(hub, 2, isins)
    publish(hub, 3, isins)
    other = join(hub, isins[0])
    publish(hub, 4, isins)
    assert not slow.client.serve(0.0)
    assert slow.frames() == []
    assert other.frames()
    assert await slow.is_woken()
    [frame] = slow.frames()
    assert frame["merged"] == 3
    assert [item["trades"] for item in frame["data"]] == [3] * len(isins)


async def test_a_client_that_left_is_forgotten() -> None:
    """Nothing is kept for it, and leaving twice is fine."""
    hub = make_hub()
    listener = join(hub, SAMSUNG)
    hub.leave(listener.client)
    hub.leave(listener.client)
    publish(hub, 2)
    assert listener.next_frame() is None
    assert len(hub) == 0


async def test_a_client_that_cannot_be_served_costs_the_others_nothing() -> None:
    """A fault of ours ends one connection, with 1011."""
    hub = make_hub()

    class Broken(Listener):
        def wake(self) -> None:
            raise RuntimeError("a fault of ours")

        def end(self, ending: Ending) -> None:
            super().end(ending)
            self.wake()

    broken, other = Broken(hub), join(hub, SAMSUNG)
    broken.subscribe(SAMSUNG)
    for seq in (2, 3):
        other.woken.clear()
        publish(hub, seq)
        assert await other.is_woken()
        assert [frame["type"] for frame in other.frames()] == ["update"]
    assert broken.ending is not None
    assert broken.ending.code == CloseCode.INTERNAL
    assert len(hub) == 1


async def test_a_fault_while_looking_after_clients_ends_one_of_them() -> None:
    """The gateway goes on, and so do the others."""
    hub = make_hub(heartbeat_ms=20)

    class Broken(Listener):
        def stuck_s(self, now_s: float) -> float:
            raise RuntimeError("a fault of ours")

    now_s = time.monotonic()
    broken, other = Broken(hub, now_s), join(hub, SAMSUNG, now_s=now_s)
    care = asyncio.create_task(hub.run())
    async with asyncio.timeout(10):
        await broken.ended.wait()
    other.woken.clear()
    assert await other.is_woken()
    care.cancel()
    assert len(hub) == 1


async def test_a_lasting_status_is_told_to_those_who_come_later() -> None:
    """And it ends with the next status that does not last."""
    hub = make_hub()
    hub.announce(b"stale", is_lasting=True)
    assert join(hub).next_frame() == b"stale"
    hub.announce(b"live", is_lasting=False)
    assert join(hub).next_frame() is None


async def test_another_epoch_wakes_everybody() -> None:
    """Every client gets its snapshot anew."""
    hub = make_hub()
    listener = join(hub, SAMSUNG)
    hub.restart()
    assert await listener.is_woken()
    assert [frame["type"] for frame in listener.frames()] == ["snapshot"]


async def test_a_quiet_client_gets_heartbeats() -> None:
    """As long as it is there."""
    hub = make_hub(heartbeat_ms=20)
    listener = join(hub, SAMSUNG, now_s=time.monotonic())
    care = asyncio.create_task(hub.run())
    assert await listener.is_woken()
    assert [frame["type"] for frame in listener.frames()] == ["heartbeat"]
    care.cancel()


@pytest.mark.parametrize(
    ("limit", "is_stuck", "keys", "code", "counter"),
    [
        ({}, True, (SAMSUNG,), CloseCode.SLOW, "clients_slow_closed"),
        (
            {"bounds": Bounds(first_keys_s=0.1)},
            *(False, (), CloseCode.POLICY, "clients_idle_closed"),
        ),
        (
            {"bounds": Bounds(max_stream_s=0.1)},
            *(False, ("*",), CloseCode.RESTART, "clients_retired"),
        ),
    ],
)
async def test_the_slow_the_idle_and_the_old_are_sent_away(
    limit: dict[str, Any],
    is_stuck: bool,
    keys: tuple[str, ...],
    code: CloseCode,
    counter: str,
) -> None:
    """Each with its code and its counter; it leaves the hub at once."""
    hub = make_hub(heartbeat_ms=100, **limit)
    listener = join(hub, *keys, now_s=time.monotonic())
    listener.stuck = is_stuck
    care = asyncio.create_task(hub.run())
    async with asyncio.timeout(10):
        await listener.ended.wait()
    care.cancel()
    assert len(hub) == 0
    assert listener.ending is not None
    assert listener.ending.code == code
    assert getattr(hub.counters, counter) == 1
    notices = [json.loads(listener.ending.notice)] if listener.ending.notice else []
    assert len(notices) == (code == CloseCode.RESTART)


async def test_a_request_waits_until_the_clients_are_served() -> None:
    """A window goes out first; while there is none, nobody waits."""
    hub = make_hub()
    await hub.served()
    watching = join(hub, SAMSUNG)
    await hub.served()
    watching.woken.clear()
    publish(hub, 2)
    assert not watching.woken.is_set()
    await hub.served()
    assert watching.woken.is_set()


async def test_a_request_does_not_wait_for_clients_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where there is always somebody to serve, REST is slow and not dead."""
    hub = make_hub()
    watching = join(hub, SAMSUNG)
    seqs = itertools.count(3)
    monkeypatch.setattr(watching, "wake", lambda: publish(hub, next(seqs)))
    publish(hub, 2)
    async with asyncio.timeout(5):
        await hub.served(within_s=0.01)
    assert not watching.woken.is_set()


async def test_who_makes_a_gateway_late_goes_and_not_the_newcomer() -> None:
    """Streams of the address that most is worked out for; nobody's if none is much."""
    hub = make_hub()
    greedy, modest = Listener(hub), Listener(hub)
    greedy.client.commands.address = "greedy"
    modest.client.commands.address = "modest"
    hub.excess = lambda: "the gateway is 900 ms late"
    hub.shed_heaviest()
    assert (greedy.ending, modest.ending) == (None, None)
    assert hub.enter("newcomer") == "the gateway is 900 ms late"
    rows = hub.settings.rows_per_second * BURST_S * 0.8
    hub.work.charge(("greedy",), rows, time.monotonic())
    hub.shed_heaviest()
    assert greedy.ending is not None
    assert greedy.ending.code == CloseCode.OVERLOADED
    assert modest.ending is None
    assert hub.enter("newcomer") is None
    assert hub.enter("greedy") == "the gateway is 900 ms late"
    assert hub.counters.clients_shed == 3
