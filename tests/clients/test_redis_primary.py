"""The primary that Sentinels name, on real servers: it changes, and clients follow."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
import uvloop
from redis.asyncio.connection import (
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.sentinel import MasterNotFoundError

from ingest.tradelog.contract import LogUnusable
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.redis_servers import NAME, RedisServers
from tickthrottle_client.producer import TradeProducer
from tickthrottle_client.redis_faults import is_passing
from tickthrottle_client.redis_primary import connect, connect_async

pytestmark = pytest.mark.redis
TRADE = {"isin": "KR7005930003", "time": 1_773_964_804_123_456, "price": "1", "size": 1}


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[RedisServers]:
    with RedisServers(tmp_path) as servers:
        yield servers


def test_clients_of_every_kind_follow_to_the_new_primary(servers: RedisServers) -> None:
    """One that blocks, one of an event loop, and a producer that waits."""
    first = servers.primary_port()

    async def follow() -> None:
        async with (
            connect_async(servers.url()) as client,
            TradeProducer(servers.url()) as producer,
        ):
            await producer.send(TRADE)
            await producer.flush()
            await client.set("a", "1")
            await client.execute_command("WAIT", 2, 5_000)
            await asyncio.to_thread(servers.kill, first)
            await producer.send(TRADE)
            await producer.flush()
            assert await client.get("a") == b"1"
            assert producer.acknowledged == 2

    with connect(servers.url()) as client:
        assert client.info("server")["tcp_port"] == first
        asyncio.run(follow())
        assert client.info("server")["tcp_port"] == servers.primary_port() != first


def test_what_no_replica_has_is_not_acknowledged(servers: RedisServers) -> None:
    """The writer says so, and that it may pass: a replica may come back."""
    check_sentences(servers)
    with connect(servers.url()) as client:
        info = open_log(client, "tt", 1)
        writer = RedisLogWriter(client, "tt", info, 1_000, replicas=1)
        assert writer.append([("KR7005930003", b"x")]) == 1
        _, *replicas = servers.ports
        for replica in replicas:
            servers.kill(replica)
        with pytest.raises(redis.TimeoutError, match="0 of 1 replicas have") as caught:
            writer.append([("KR7005930003", b"x")])
        assert is_passing(caught.value)
        writer.abandon()
        assert writer.tallies[0].in_doubt == 1
        client.config_set("min-replicas-to-write", 1)
        with pytest.raises(redis.RedisError, match="NOREPLICAS") as caught:
            writer.append([("KR7005930003", b"x")])
        assert is_passing(caught.value)


def check_sentences(servers: RedisServers) -> None:
    """A name that no Sentinel knows; a Sentinel in place of a server."""
    with (
        connect(servers.url().replace(NAME, "other")) as client,
        pytest.raises(MasterNotFoundError, match="No master found for 'other'") as told,
    ):
        client.ping()
    # It may be a fail-over: whoever waits goes on to ask.
    assert is_passing(told.value)
    with (
        redis.Redis(port=servers.sentinel_ports[0]) as client,
        pytest.raises(LogUnusable, match=r"Redis Sentinel: .* give redis\+sentinel://"),
    ):
        open_log(client, "tt", 1)


def test_a_connection_lost_just_before_a_command(redis_url: str) -> None:
    """Not even the event loop's own error gets through; the next command connects.

    The moment cannot be hit from outside: after the pool has looked at the connection,
    and before the command is written to it.
    """

    async def check() -> None:
        client = connect_async(redis_url, retry=Retry(NoBackoff(), 0))
        connection: Any = await client.connection_pool.get_connection()
        connection._writer.transport.abort()
        # The event loop closes it in its own time.
        await asyncio.sleep(0.05)
        with pytest.raises(RedisConnectionError, match=r"^Connection lost: .* closed"):
            await connection.send_command("GET", "any")
        await client.connection_pool.release(connection)
        assert await client.get("any") is None
        await client.aclose()

    uvloop.run(check())


async def test_the_address_says_how() -> None:
    """TCP, TLS and Unix sockets alike; each tells what it could not reach."""
    for url, kind in (
        ("redis://127.0.0.1:1/0", Connection),
        ("rediss://127.0.0.1:1/0", SSLConnection),
        ("unix:///nowhere/redis.sock", UnixDomainSocketConnection),
    ):
        client = connect_async(url, retry=Retry(NoBackoff(), 0))
        connection = client.connection_pool.make_connection()
        assert isinstance(connection, kind)
        with pytest.raises(RedisConnectionError):
            await client.ping()
        await client.aclose()


async def test_a_task_that_is_cancelled_while_it_sends_ends(redis_url: str) -> None:
    """Whatever step of sending is reached, also the one after the last byte is away."""
    client = connect_async(redis_url, socket_timeout=5)
    for steps in range(12):
        connection: Any = await client.connection_pool.get_connection()
        task = asyncio.create_task(connection.send_command("PING"))
        for _ in range(steps):
            await asyncio.sleep(0)
        is_cancelled = task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        assert isinstance(outcome, asyncio.CancelledError) == is_cancelled, steps
        await connection.disconnect()
        await client.connection_pool.release(connection)
    assert not is_cancelled
    await client.aclose()
