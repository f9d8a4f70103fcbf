"""Clients behind a trusted proxy: each has the limits of its own address."""

import socket
import time

import pytest

from gateway.transport.uvicorn_http import LATE_S
from tests.conftest import eventually
from tests.gateway.servers import Gateway, running_gateway, upgrade_request

pytestmark = pytest.mark.redis

STRANGER, OTHER = "192.0.2.7", "198.51.100.8"
BODY = b"x" * 100_000


def ask(
    gateway: Gateway, client: str | None, request: bytes, body: bytes = b""
) -> bytes:
    """Ask as a proxy that appends; the client has written another's address."""
    said = f"X-Forwarded-For: {OTHER}\r\n"
    appended = "" if client is None else f"{said}X-Forwarded-For: {client}\r\n"
    lines = [request, b"Host: x\r\nConnection: close\r\n", appended.encode(), b"\r\n"]
    with socket.create_connection((gateway.host, gateway.port), 10) as proxy:
        proxy.sendall(b"".join(lines) + body)
        return proxy.recv(65_536)


LIVE = b"GET /health/live HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("request_", "body"),
    [
        (b"GET /favicon.ico HTTP/1.1\r\n", b""),
        (b"POST /v1/quotes HTTP/1.1\r\nContent-Length: 100000\r\n", BODY),
        (
            upgrade_request("/nothing").replace(b"Host: x\r\n", b"").rstrip() + b"\r\n",
            b"",
        ),
    ],
    ids=["404", "413", "no stream"],
)
def test_a_refusal_is_charged_to_the_client_and_not_to_its_proxy(
    redis_url: str, request_: bytes, body: bytes
) -> None:
    """It waits; others of the proxy, and the proxy itself, do not."""
    with running_gateway(redis_url, refusals_per_second=0.1) as gateway:
        assert b"HTTP/1.1 4" in ask(gateway, STRANGER, request_, body)

        def is_late() -> bool:
            return gateway.count("connections_read_late") > 0

        for client in (OTHER, None):
            assert b"200 OK" in ask(gateway, client, LIVE)
        assert not is_late()
        began_s = time.monotonic()
        assert b"200 OK" in ask(gateway, STRANGER, LIVE)
        assert time.monotonic() - began_s >= LATE_S
        assert is_late()


def test_what_no_client_can_be_told_of_is_charged_to_nobody(redis_url: str) -> None:
    """A head without an end, and a request in which the proxy names no client."""
    with running_gateway(redis_url, refusals_per_second=0.1) as gateway:
        head = b"GET /favicon.ico HTTP/1.1\r\n"
        assert b" 404 " in ask(gateway, None, head)
        many = b"".join(b"X-%d: b\r\n" % number for number in range(200))
        assert b" 431 " in ask(gateway, STRANGER, head + many)
        for client in (None, STRANGER, OTHER):
            assert b"200 OK" in ask(gateway, client, LIVE)
        assert gateway.count("connections_read_late") == 0


def test_a_trailer_names_no_client(redis_url: str) -> None:
    """It comes from the client itself, behind what the proxy has written."""
    trailer = f"0\r\nX-Forwarded-For: {OTHER}\r\n\r\n".encode()
    chunked = b"POST /v1/nothing HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
    with running_gateway(redis_url, refusals_per_second=0.1) as gateway:
        assert b"HTTP/1.1 4" in ask(gateway, STRANGER, chunked, trailer)
        assert b"200 OK" in ask(gateway, OTHER, LIVE)
        assert gateway.count("connections_read_late") == 0
        assert b"200 OK" in ask(gateway, STRANGER, LIVE)
        assert gateway.count("connections_read_late") == 1


def test_who_goes_while_he_waits_gets_no_answer(redis_url: str) -> None:
    """Nothing is worked out for him, and his place is free."""
    with running_gateway(redis_url, refusals_per_second=0.1) as gateway:
        assert b" 404 " in ask(gateway, STRANGER, b"GET /favicon.ico HTTP/1.1\r\n")
        waiting = upgrade_request("", f"X-Forwarded-For: {STRANGER}")
        with socket.create_connection((gateway.host, gateway.port), 10) as proxy:
            proxy.sendall(waiting)
            eventually(lambda: gateway.count("connections_read_late") == 1)
        assert b"200 OK" in ask(gateway, STRANGER, LIVE)
        assert gateway.health()["clients"] == 0


def test_a_redirection_keeps_the_scheme_that_the_proxy_names(
    redis_url: str,
) -> None:
    """A page over TLS is not sent away from it; a stranger's word does not count."""
    asked = b"GET /v1/quotes/ HTTP/1.1\r\nX-Forwarded-Proto: https\r\n"
    for proxies, scheme in (("127.0.0.1", b"https"), ("", b"http")):
        with running_gateway(redis_url, forwarded_allow_ips=proxies) as gateway:
            answer = ask(gateway, STRANGER, asked)
        assert b"\r\nlocation: %b://x/v1/quotes\r\n" % scheme in answer
