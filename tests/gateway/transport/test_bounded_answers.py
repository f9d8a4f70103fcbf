"""Answers that wait for their readers."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from gateway.admission.bounds import Bounds
from gateway.transport.bounded_answers import BytesInFlight
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import make_isins, make_row
from tests.gateway.servers import Gateway, running_gateway


def test_a_body_is_counted_once_however_many_read_it() -> None:
    """What is refused is not counted, and what has left makes room."""
    in_flight = BytesInFlight(10)
    shared, other = b"x" * 6, b"y" * 5
    assert in_flight.enter(shared)
    assert in_flight.enter(shared)
    assert not in_flight.enter(other)
    in_flight.leave(shared)
    assert not in_flight.enter(other)
    in_flight.leave(shared)
    assert in_flight.enter(other)


@contextmanager
def asking(gateway: Gateway, path: str) -> Iterator[socket.socket]:
    """Ask for something and read nothing."""
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        peer.settimeout(30)
        peer.connect((gateway.host, gateway.port))
        peer.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        yield peer


def fill(publisher: Publisher, windows: int) -> None:
    """Publish windows of some 300 KiB each."""
    isins = make_isins(2_500)
    for seq in range(1, windows + 1):
        publisher.publish(*[make_row(isin, seq=seq) for isin in isins])


@pytest.mark.redis
def test_a_peer_that_takes_nothing_of_an_answer_is_cut(
    publisher: Publisher, redis_url: str
) -> None:
    """It would hold the answer for ever."""
    fill(publisher, 20)
    with running_gateway(redis_url, Bounds(slow_close_s=1)) as gateway:
        gateway.wait_until(20)
        with asking(gateway, "/v1/windows?limit=20") as peer:
            gateway.wait_for("answers_cut")
            assert len(b"".join(iter(lambda: peer.recv(65_536), b""))) < 2_000_000


@pytest.mark.redis
def test_an_answer_for_which_there_is_no_room_is_refused(
    publisher: Publisher, redis_url: str
) -> None:
    """The same answer once more needs no room; there is room when a reader has gone."""
    fill(publisher, 20)
    path, other = "/v1/windows?limit=20", "/v1/windows?limit=19"
    with running_gateway(redis_url, Bounds(answer_bytes=7_000_000)) as gateway:
        gateway.wait_until(20)
        with asking(gateway, path):
            status, _, headers = eventually(
                lambda: (a := gateway.fetch(other))[0] == 503 and a
            )
            assert (status, headers["retry-after"]) == (503, "1")
            assert gateway.get(path)[0] == 200
            assert gateway.get("/v1/version")[0] == 200
        eventually(lambda: gateway.get(other)[0] == 200)
        assert gateway.count("answers_refused") >= 1
