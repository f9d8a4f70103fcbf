"""Who gets a stream, and who loses it, over real sockets."""

import json
import socket
import time

import pytest
from structlog.testing import capture_logs
from websockets.exceptions import InvalidStatus

from gateway.admission.bounds import Bounds
from gateway.stream.commands import MOST_BAD, MOST_LIMITED
from tests.conftest import eventually
from tests.gateway.publisher import Publisher
from tests.gateway.samples import SAMSUNG, make_row
from tests.gateway.servers import Gateway, running_gateway, upgrade_request

pytestmark = pytest.mark.redis


def test_a_page_of_another_host_is_refused_before_the_upgrade(gateway: Gateway) -> None:
    """A tab may not read prices in its visitor's name; the log says what lets it in."""
    with (
        capture_logs() as lines,
        pytest.raises(InvalidStatus) as caught,
        gateway.stream(origin="http://evil"),
    ):
        pass
    assert caught.value.response.status_code == 403
    [line] = [line for line in lines if line.get("origin") == "http://evil"]
    assert line["log_level"] == "warning"
    assert line["setting"] == "TICKTHROTTLE_ALLOWED_ORIGINS"
    assert gateway.count("clients_origin_refused") == 1
    with gateway.stream(origin=f"http://{gateway.host}:{gateway.port}") as stream:
        assert stream.subscribe(SAMSUNG) == []


def test_an_origin_that_cannot_be_read_is_another_host(gateway: Gateway) -> None:
    """Of the stream and of events."""
    for origin in ["http://[", "http://[::1", "\xff://", "[" * 9_000]:
        head = f"GET /v1/sse?keys=* HTTP/1.1\r\nHost: x\r\nOrigin: {origin}\r\n\r\n"
        upgrade = upgrade_request("", f"Origin: {origin[:8_000]}")
        for request in (head.encode("latin-1"), upgrade):
            with socket.create_connection((gateway.host, gateway.port), 10) as client:
                client.sendall(request)
                assert client.recv(100).startswith(b"HTTP/1.1 403 ")


def test_a_listed_page_is_let_in(redis_url: str) -> None:
    """The list is for pages that are served from elsewhere."""
    with (
        running_gateway(redis_url, allowed_origins="https://shop.example") as gateway,
        gateway.stream(origin="https://shop.example") as stream,
    ):
        assert stream.welcome["protocol"] == "tick.v1"


@pytest.mark.parametrize("limit", ["max_clients", "max_clients_per_address"])
def test_one_connection_too_many_is_closed_with_1013(
    redis_url: str, limit: str
) -> None:
    """The others are not disturbed, and who leaves makes room."""
    with running_gateway(redis_url, **{limit: 2}) as gateway:
        with gateway.stream() as first, gateway.stream():
            assert gateway.close_code_of_a_new_stream() == 1013
            assert gateway.count("clients_full_refused") == 1
            first.say(op="ping", id=1)
            assert first.take("pong")["id"] == 1
        eventually(lambda: gateway.health()["clients"] == 0)
        with gateway.stream() as again:
            assert again.welcome["protocol"] == "tick.v1"


def test_who_asks_for_nothing_is_closed_with_1008(redis_url: str) -> None:
    """A ping or a bad message is no request for prices; a subscribe is."""
    with (
        running_gateway(redis_url, Bounds(first_keys_s=0.5)) as gateway,
        gateway.stream(f"?keys={SAMSUNG}") as asking,
        gateway.stream() as idle,
    ):
        idle.say(op="ping")
        assert idle.close_code() == 1008
        asking.take("ack")
        asking.say(op="unsubscribe", keys=[SAMSUNG])
        asking.take("snapshot")
        assert asking.take("ack")["count"] == 0
        assert gateway.count("clients_idle_closed") == 1


def test_an_old_stream_is_told_and_closed_with_1012(
    publisher: Publisher, redis_url: str
) -> None:
    """So that connections spread over gateways again, and tokens are asked for anew."""
    publisher.publish(make_row(SAMSUNG))
    with running_gateway(redis_url, Bounds(max_stream_s=0.5)) as gateway:
        gateway.wait_for("reloads")
        with gateway.stream(f"?keys={SAMSUNG}") as stream:
            stream.take("ack")
            stream.take("snapshot")
            notice = stream.take("notice")
            assert notice["code"] == "restart"
            assert notice["message"] == "the stream is old"
            assert 0 <= notice["reconnect_after_ms"] <= 3_000
            assert stream.close_code() == 1012
            assert gateway.count("clients_retired") == 1


@pytest.mark.parametrize(
    ("message", "times", "rate", "code"),
    [("{", MOST_BAD, 100, 4500), ('{"op":"ping"}', 1 + MOST_LIMITED, 0.01, 4429)],
)
def test_a_client_that_does_not_learn_is_closed(
    redis_url: str, message: str, times: int, rate: float, code: int
) -> None:
    """Each message has its answer; too many refusals in a row end it."""
    with (
        running_gateway(redis_url, messages_per_second=rate) as gateway,
        gateway.stream() as stream,
    ):
        for _ in range(times):
            stream.connection.send(message)
        assert stream.close_code() == code
        assert gateway.count("clients_abusive_closed") == 1


def test_a_good_message_makes_up_for_bad_ones(redis_url: str) -> None:
    """Only refusals in a row count."""
    with (
        running_gateway(redis_url, messages_per_second=500) as gateway,
        gateway.stream() as stream,
    ):
        for _ in range(3):
            for _ in range(MOST_BAD - 1):
                stream.connection.send("{")
                assert stream.take("error")["code"] == "bad_json"
            stream.say(op="ping")
            stream.take("pong")


@pytest.mark.parametrize("start", [b"", b"GET /v1/stream HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_a_request_that_never_ends_is_cut(redis_url: str, start: bytes) -> None:
    """Slowloris: a byte now and then does not hold a socket."""
    with (
        running_gateway(redis_url, Bounds(request_s=2)) as gateway,
        socket.create_connection((gateway.host, gateway.port), timeout=10) as client,
    ):
        client.sendall(start)
        client.settimeout(0.1)
        eventually(lambda: _is_cut(client, b"x" if start else b""))


def test_a_second_request_has_a_deadline_too(redis_url: str) -> None:
    """A connection that was used once is no better."""
    request = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    with (
        running_gateway(redis_url, Bounds(request_s=2)) as gateway,
        socket.create_connection((gateway.host, gateway.port), timeout=10) as client,
    ):
        client.sendall(request)
        answer = b""
        while not answer.endswith(b"}"):
            # Head and body may come one by one.
            piece = client.recv(65_536)
            assert piece
            answer += piece
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["live"]
        client.sendall(request[:20])
        client.settimeout(0.1)
        eventually(lambda: _is_cut(client, b""))


def test_a_stream_outlives_the_deadline_of_its_request(redis_url: str) -> None:
    """The deadline ends with the head of the request."""
    with (
        running_gateway(redis_url, Bounds(request_s=1)) as gateway,
        gateway.stream() as one,
    ):
        time.sleep(1.2)
        one.say(op="ping", id=2)
        assert one.take("pong")["id"] == 2


def _is_cut(client: socket.socket, more: bytes) -> bool:
    """Send a little more; say whether the other side has ended the connection."""
    try:
        client.sendall(more)
        return client.recv(1) == b""
    except TimeoutError:
        return False
    except OSError:
        return True
