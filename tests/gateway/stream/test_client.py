"""A client's outbox: what goes first, and what is bounded."""

import asyncio

from gateway.settings import GatewaySettings
from gateway.stream.client import (
    MAX_REASON_BYTES,
    MAX_WAITING_ANSWERS,
    Ending,
)
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from tests.gateway.listener import Listener
from tests.gateway.samples import SAMSUNG, make_board, make_row
from tickthrottle_client.tick_v1 import CloseCode


def make_listener() -> Listener:
    """Return a client on a board with one instrument."""
    hub = Hub(make_board(make_row()), GatewaySettings(), Counters())
    return Listener(hub)


async def test_answers_come_before_status_and_status_before_data() -> None:
    """An ack is never behind the data it announces."""
    listener = make_listener()
    listener.subscribe(SAMSUNG)
    client = listener.client
    client.delivery.restart()
    client.announce(b'{"type":"status"}')
    client.post(b'{"type":"ack"}')
    found = [frame["type"] for frame in listener.frames()]
    assert found == ["ack", "status", "snapshot"]


async def test_only_the_newest_status_is_sent() -> None:
    """A client that missed a status gets the one that holds now."""
    listener = make_listener()
    listener.client.announce(b"1")
    listener.client.announce(b"2")
    assert [listener.next_frame(), listener.next_frame()] == [b"2", None]


async def test_a_heartbeat_is_not_sent_beside_data() -> None:
    """Any frame is a sign of life."""
    listener = make_listener()
    listener.subscribe(SAMSUNG)
    listener.client.delivery.restart()
    listener.client.beat(0, 0.0)
    assert [frame["type"] for frame in listener.frames()] == ["snapshot"]
    listener.client.beat(0, 0.0)
    assert [frame["type"] for frame in listener.frames()] == ["heartbeat"]


async def test_a_client_with_many_unread_answers_has_no_room() -> None:
    """Room comes back with the first answer that is sent, or when it has gone."""
    listener = make_listener()
    client = listener.client
    for make_room in (listener.next_frame, client.forget_answers):
        while len(client._answers) < MAX_WAITING_ANSWERS:
            await client.room()
            client.post(b"{}")
        waiting = asyncio.create_task(client.room())
        await asyncio.sleep(0)
        assert not waiting.done()
        make_room()
        await waiting


async def test_after_the_end_only_answers_and_the_notice_are_sent() -> None:
    """No data follows a notice; the first ending counts."""
    listener = make_listener()
    listener.subscribe(SAMSUNG)
    client = listener.client
    client.post(b'{"type":"error"}')
    client.delivery.restart()
    client.end(Ending(CloseCode.RESTART, "the stream is old", b'{"type":"notice"}'))
    client.end(Ending(CloseCode.SLOW, "too slow"))
    assert [frame["type"] for frame in listener.frames()] == ["error", "notice"]
    assert listener.ending is not None
    assert listener.ending.code == CloseCode.RESTART


def test_a_reason_fits_into_a_close_frame() -> None:
    """A longer one would end the connection without any code, which means: retry."""
    cases: list[str] = ["x" * 200, "\u20ac" * 50, "\ud800" * 200, "short"]
    for text in cases:
        reason = Ending(CloseCode.TOKEN_REFUSED, text).reason
        assert len(reason.encode()) <= MAX_REASON_BYTES
        assert text.encode("utf-8", "replace").startswith(reason.encode())
        assert len(reason.encode()) >= min(len(text), MAX_REASON_BYTES - 3)
