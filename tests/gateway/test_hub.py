"""The hub: publishing hands out work and waits for nobody."""

import asyncio
import json
from typing import Any

from gateway.counters import Counters
from gateway.frames import Update
from gateway.hub import MAX_WAITING_ANSWERS, Client, Hub
from gateway.settings import GatewaySettings
from tests.gateway.samples import SAMSUNG, make_board, make_row, make_snapshot


def make_hub() -> Hub:
    """Return a hub on a board with one issue."""
    return Hub(make_board(make_row()), GatewaySettings(), Counters())


def join(hub: Hub, *keys: str) -> Client:
    """Return a client that watches the keys and has its snapshot already."""
    client = hub.join(0.0)
    client.session.answer(json.dumps({"op": "subscribe", "keys": keys}), 0.0, 0)
    while client.next_frame() is not None:
        pass
    return client


def publish(hub: Hub, seq: int) -> None:
    """Publish a window with a newer row."""
    board = hub.board
    rows = board.apply(make_snapshot(board.position.offset + 1, make_row(seq=seq)))
    hub.publish(Update(board.position, 1, rows))


def kinds(client: Client) -> list[str]:
    """Return the types of all frames a client is due."""
    found = []
    while (frame := client.next_frame()) is not None:
        message: dict[str, Any] = json.loads(frame)
        found.append(message["type"])
    return found


async def is_woken(client: Client) -> bool:
    """Tell whether a client has been told that there is something to send."""
    waiting = asyncio.create_task(client.wait(60))
    for _ in range(3):
        await asyncio.sleep(0)
    woken = waiting.done()
    waiting.cancel()
    return woken


async def test_clients_with_the_same_view_are_sent_the_same_object() -> None:
    """A frame is built once for all of them."""
    hub = make_hub()
    first, second = join(hub, SAMSUNG), join(hub, SAMSUNG)
    publish(hub, 2)
    frame = first.next_frame()
    assert frame is not None
    assert frame is second.next_frame()
    assert len(hub) == 2


async def test_only_clients_with_news_are_woken() -> None:
    """A window of other issues costs a client nothing."""
    hub = make_hub()
    watching, idle = join(hub, SAMSUNG), join(hub)
    publish(hub, 2)
    assert await is_woken(watching)
    assert not await is_woken(idle)


async def test_a_client_that_left_is_forgotten() -> None:
    """Nothing is kept for it, and leaving twice is fine."""
    hub = make_hub()
    client = join(hub, SAMSUNG)
    hub.leave(client)
    hub.leave(client)
    publish(hub, 2)
    assert client.next_frame() is None
    assert len(hub) == 0


async def test_answers_come_before_status_and_status_before_data() -> None:
    """An ack is never behind the data it announces."""
    hub = make_hub()
    client = join(hub, SAMSUNG)
    publish(hub, 2)
    hub.announce(b'{"type":"status"}', is_lasting=False)
    client.post(b'{"type":"ack"}')
    assert kinds(client) == ["ack", "status", "update"]


async def test_only_the_newest_status_is_sent() -> None:
    """A client that missed a status gets the one that holds now."""
    hub = make_hub()
    client = join(hub)
    hub.announce(b"1", is_lasting=True)
    hub.announce(b"2", is_lasting=True)
    assert [client.next_frame(), client.next_frame()] == [b"2", None]


async def test_a_lasting_status_is_told_to_those_who_come_later() -> None:
    """And it ends with the next status that does not last."""
    hub = make_hub()
    hub.announce(b"stale", is_lasting=True)
    assert hub.join(0.0).next_frame() == b"stale"
    hub.announce(b"live", is_lasting=False)
    assert hub.join(0.0).next_frame() is None


async def test_a_client_with_many_unread_answers_has_no_room() -> None:
    """Room comes back with the first answer that is sent."""
    client = make_hub().join(0.0)
    for _ in range(MAX_WAITING_ANSWERS):
        await client.room()
        client.post(b"{}")
    waiting = asyncio.create_task(client.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    client.next_frame()
    await waiting


async def test_another_epoch_wakes_everybody() -> None:
    """Every client gets its snapshot anew."""
    hub = make_hub()
    client = join(hub, SAMSUNG)
    hub.restart()
    assert await is_woken(client)
    assert kinds(client) == ["snapshot"]


async def test_waiting_ends_when_the_time_is_up() -> None:
    """A heartbeat is due even if nobody has anything to say."""
    await make_hub().join(0.0).wait(0.001)
