"""Requests that are too large, too many, too slow or none at all."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from gateway.transport.uvicorn_http import LATE_S, MAX_HEADERS, MAX_PIPELINED
from tests.conftest import eventually
from tests.gateway.samples import SAMSUNG
from tests.gateway.servers import Gateway, running_gateway, upgrade_request

pytestmark = pytest.mark.redis

LIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"


@contextmanager
def connected(gateway: Gateway) -> Iterator[socket.socket]:
    """Open a bare connection."""
    with socket.create_connection((gateway.host, gateway.port), 10) as client:
        yield client


def answer(client: socket.socket, *pieces: bytes) -> bytes:
    """Send, and return what comes until the other side has ended the connection."""
    found = b""
    with suppress(OSError):
        for piece in pieces:
            client.sendall(piece)
    with suppress(ConnectionError):
        while piece := client.recv(65_536):
            found += piece
    return found


def is_ended(client: socket.socket) -> bool:
    """Say whether the other side has ended the connection."""
    client.settimeout(0.05)
    try:
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True


MEBIBYTE = b"a" * 1_048_576


@pytest.mark.parametrize(
    ("pieces", "status"),
    [
        ((b"GET /", MEBIBYTE), 431),
        ((b"GET /?", MEBIBYTE, b" HTTP/1.1\r\n\r\n"), 431),
        ((LIVE, b"X-A: ", MEBIBYTE), 431),
        ((LIVE, b"X-A: b\r\n" * (MAX_HEADERS + 1)), 431),
        ((LIVE, b"X-A: " + b"a" * 9_000 + b"\r\n", b"X-B: " + MEBIBYTE), 431),
        ((LIVE, b"Content-Length: 1048576\r\n\r\n", MEBIBYTE), 413),
        ((LIVE, b"Transfer-Encoding: chunked\r\n\r\nfffff\r\n", MEBIBYTE), 413),
        ((b"\r\n" * 100_000,), 431),
        ((b"\0" * 100,), 400),
        ((b"GET /\xff HTTP/1.1\r\n\r\n",), 400),
        ((b"CONNECT a:1 HTTP/1.1\r\n\r\n",), 400),
    ],
)
def test_a_request_has_a_size(
    gateway: Gateway, pieces: tuple[bytes, ...], status: int
) -> None:
    """Head and body: what is longer is refused, whichever part it is that grows."""
    with connected(gateway) as client:
        told = answer(client, *pieces)
    if status == 413 and told.startswith(b"HTTP/1.1 200 "):
        # It was answered before its body had come.
        return
    assert told.startswith(f"HTTP/1.1 {status} ".encode())
    name = "requests_invalid" if status == 400 else "requests_too_large"
    assert gateway.count(name) == 1


def test_what_follows_a_refusal_is_hardly_read(gateway: Gateway) -> None:
    """Who goes on sending costs the others no time."""
    sent, most = 0, 64 * len(MEBIBYTE)
    with connected(gateway) as client, suppress(OSError):
        client.sendall(b"GET /?")
        while sent < most:
            client.sendall(MEBIBYTE)
            sent += len(MEBIBYTE)
    assert sent < most / 2


def test_operators_requests_have_the_same_size(gateway: Gateway) -> None:
    """Their port may be reached by strangers, too."""
    with connected(gateway.operators) as client:
        told = answer(client, LIVE, b"X-A: ", MEBIBYTE)
    assert told.startswith(b"HTTP/1.1 431 ")


def test_trailers_are_a_part_of_the_request(gateway: Gateway) -> None:
    """They come after the answer, maybe, and do not grow either."""
    chunked = LIVE + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"
    for trailers in (b"X-A: b\r\n" * 1_000, b"X-A: " + MEBIBYTE):
        with connected(gateway) as client:
            answer(client, chunked, trailers)
    gateway.wait_for("requests_too_large", 2)


def test_pipelined_requests_do_not_pile_up(gateway: Gateway) -> None:
    """A few may wait, in order; who sends thousands at once is cut off."""
    with connected(gateway) as client:
        few = LIVE + b"\r\n"
        told = answer(client, few * 5, LIVE + b"Connection: close\r\n\r\n")
        assert told.count(b"HTTP/1.1 200 ") == 6
    with connected(gateway) as client:
        told = answer(client, few * 20 * MAX_PIPELINED)
        assert told.count(b"HTTP/1.1 200 ") <= MAX_PIPELINED


def test_a_stream_with_a_request_behind_it_ends_with_its_connection(
    redis_url: str,
) -> None:
    """Otherwise a stranger could take the place of every client, and go."""
    events = b"GET /v1/sse?keys=* HTTP/1.1\r\nHost: x\r\n\r\n"
    with running_gateway(redis_url, heartbeat_ms=100) as gateway:
        with connected(gateway) as client:
            client.sendall(events + LIVE + b"\r\n" + LIVE + b"\r\n")
            eventually(lambda: gateway.health()["clients"] == 1)
        eventually(lambda: gateway.health()["clients"] == 0)


@pytest.mark.parametrize(
    ("query", "header"),
    [
        ("?" + "a" * 9_000, "X-A: b"),
        ("?\xff", "X-A: b"),
        ("", "\r\n".join(f"X-{n}: b" for n in range(200))),
        ("", "Content-Length: 5"),
    ],
)
def test_an_upgrade_that_cannot_be_read_is_answered(
    gateway: Gateway, query: str, header: str
) -> None:
    """Nobody waits for ever for another one."""
    with connected(gateway) as client:
        request = upgrade_request(query, header).decode().encode("latin-1")
        assert answer(client, request)[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 431")


@pytest.mark.parametrize(
    "start",
    [
        LIVE + b"Content-Length: 60000\r\n\r\nx",
        LIVE + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: ",
        LIVE + b"\r\n\r\n\r\n",
    ],
)
def test_a_body_has_a_deadline_too(redis_url: str, start: bytes) -> None:
    """Whatever comes after the head, and before another one."""
    with running_gateway(redis_url, request_s=2) as gateway:
        with connected(gateway) as client:
            client.sendall(start)

            def is_cut() -> bool:
                with suppress(OSError):
                    client.sendall(b"\r\n" if start.endswith(b"\r\n") else b"x")
                return is_ended(client)

            client.recv(65_536)
            eventually(is_cut)
        assert gateway.count("connections_cut_late") == 1


def test_silent_connections_make_room(redis_url: str) -> None:
    """Those that came first go; who asks for something is answered."""
    with (
        running_gateway(redis_url, max_connections_per_address=20) as gateway,
        gateway.stream() as stream,
        ExitStack() as stack,
    ):
        silent = [stack.enter_context(connected(gateway)) for _ in range(50)]
        assert gateway.get("/health/live")[0] == 200
        eventually(lambda: all(is_ended(client) for client in silent[:30]))
        assert not is_ended(silent[-1])
        assert gateway.count("connections_cut_full") >= 31
        stream.subscribe(SAMSUNG)


@pytest.mark.parametrize(
    "refused",
    [
        b"GET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"\x00\r\n\r\n",
        upgrade_request("/nothing"),
    ],
    ids=["404", "no request", "no stream"],
)
def test_who_is_refused_too_often_is_read_late(redis_url: str, refused: bytes) -> None:
    """His next connections, not those he has, and nobody else's; he is answered."""
    rules = {"refusals_per_second": 0.1, "forwarded_allow_ips": ""}
    with (
        running_gateway(redis_url, **rules) as gateway,
        connected(gateway) as open_before,
    ):
        with connected(gateway) as client:
            assert answer(client, refused)
        other = ("127.0.0.2", 0)
        with socket.create_connection((gateway.host, gateway.port), 10, other) as late:
            assert b"200 OK" in answer(late, LIVE, b"Connection: close\r\n\r\n")
        assert gateway.count("connections_read_late") == 0
        assert b"200 OK" in answer(open_before, LIVE, b"Connection: close\r\n\r\n")
        began_s = time.monotonic()
        with connected(gateway) as late:
            assert b"200 OK" in answer(late, LIVE, b"Connection: close\r\n\r\n")
        assert time.monotonic() - began_s >= LATE_S
        assert gateway.count("connections_read_late") == 1
