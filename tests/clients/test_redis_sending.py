"""Commands on an event loop: a lost connection is told, a cancelled task ends."""

import asyncio
from typing import Any

import pytest
import uvloop
from redis.asyncio.connection import (
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError

from tickthrottle_client.redis_primary import connect_async


@pytest.mark.redis
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


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("redis://127.0.0.1:1/0", Connection),
        ("rediss://127.0.0.1:1/0", SSLConnection),
        ("unix:///nowhere/redis.sock", UnixDomainSocketConnection),
    ],
)
async def test_the_address_says_how(url: str, kind: type[Any]) -> None:
    """TCP, TLS and Unix sockets alike; each tells what it could not reach."""
    client = connect_async(url, retry=Retry(NoBackoff(), 0))
    connection = client.connection_pool.make_connection()
    assert isinstance(connection, kind)
    with pytest.raises(RedisConnectionError):
        await client.ping()
    await client.aclose()


@pytest.mark.redis
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
