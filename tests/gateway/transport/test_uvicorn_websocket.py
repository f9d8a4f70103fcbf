"""What a peer may send on a stream's connection, byte by byte."""

import gc
import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from gateway.stream.client import Client
from gateway.transport.uvicorn_http import GuardedProtocol
from gateway.transport.uvicorn_websocket import (
    MAX_SMALL_FRAMES_PER_S,
    StreamProtocol,
)
from tests.conftest import eventually
from tests.gateway.run_stranger import close_code, frame
from tests.gateway.servers import Gateway, running_gateway, upgrade_request

pytestmark = pytest.mark.redis


def say(gateway: Gateway, data: bytes, until: bytes) -> bytes:
    """Send bytes on a new stream; return what comes, up to ``until`` or the end."""
    received = b""
    with socket.create_connection((gateway.host, gateway.port), 20) as client:
        client.sendall(upgrade_request())
        while b"welcome" not in received:
            received += client.recv(65_536)
        client.sendall(data)
        with suppress(ConnectionError):
            while until not in received and (piece := client.recv(65_536)):
                received += piece
    return received


def test_bad_text_before_a_close_is_no_fault(
    gateway: Gateway, caplog: pytest.LogCaptureFixture
) -> None:
    """Both in one read: the close that was read already is answered."""
    both = frame(1, b"\xff") + frame(8, b"\x03\xe8")
    assert close_code(say(gateway, both, b"\x88\x02\x03\xe8")) == 1000
    closed = say(gateway, frame(1, b"\xff"), b"never")
    assert close_code(closed) == 1007
    assert closed.endswith(b"text that is not UTF-8")
    assert [r for r in caplog.records if r.levelname == "ERROR"] == []


def test_a_message_in_very_many_pieces_is_one(gateway: Gateway) -> None:
    """Also where most of them are empty."""
    text = json.dumps({"op": "ping", "id": "x" * 30}).encode()
    first = frame(1, text[:1])[1:]
    pieces = [b"\x01" + first, *(b"\x00" + frame(0, b"")[1:] for _ in range(800))]
    pieces += [b"\x00" + frame(0, bytes((byte,)))[1:] for byte in text[1:-1]]
    pieces.append(frame(0, text[-1:]))
    assert b'"pong"' in say(gateway, b"".join(pieces), b'"pong"')


@pytest.mark.parametrize("opcode", [0, 9, 10])
def test_a_flood_of_small_frames_is_ended(gateway: Gateway, opcode: int) -> None:
    """Each costs the event loop as much as a message, and has no other limit."""
    small = bytes((opcode | (0x80 if opcode else 0), 0x80)) + bytes(4)
    start = b"\x01" + frame(1, b"x")[1:] if opcode == 0 else b""
    told = say(gateway, start + small * 3 * MAX_SMALL_FRAMES_PER_S, b"too many frames")
    assert close_code(told) == 4429
    with gateway.stream() as other:
        assert other.welcome["protocol"] == "tick.v1"


def test_a_stream_that_is_lost_by_its_peers_fault_is_a_refusal(redis_url: str) -> None:
    """Whoever goes on like that is read late."""
    rules = {"refusals_per_second": 0.1, "forwarded_allow_ips": ""}
    with running_gateway(redis_url, **rules) as gateway:
        assert close_code(say(gateway, frame(2, b"not text"), b"text frames")) == 1003
        eventually(lambda: is_read_late(gateway))


def is_read_late(gateway: Gateway) -> bool:
    """Make one more request; say whether such connections are read late."""
    assert gateway.get("/health/live")[0] == 200
    return gateway.count("connections_read_late") > 0


@pytest.fixture
def garbage() -> Iterator[list[Any]]:
    """What only a collection finds, instead of throwing it away."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()


def test_what_a_stream_needed_is_gone_with_it(
    gateway: Gateway, garbage: list[Any]
) -> None:
    """Ten thousand that come back at once would be in memory twice."""
    with gateway.stream() as stream:
        stream.subscribe("*")
    with gateway.stream() as stream:
        stream.subscribe("*")
        stream.connection.socket.shutdown(socket.SHUT_RDWR)
    eventually(lambda: gateway.health()["clients"] == 0)
    gc.collect()
    kinds = (Client, StreamProtocol, GuardedProtocol)
    assert [each for each in garbage if isinstance(each, kinds)] == []
