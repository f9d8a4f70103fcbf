"""The gateway's client of Redis: a broken connection is a RedisError, always."""

import asyncio
from typing import Any

import pytest
import uvloop
from redis.asyncio.connection import (
    Connection,
    SSLConnection,
    UnixDomainSocketConnection,
)
from redis.exceptions import ConnectionError as RedisConnectionError

from gateway.upstream.redis_client import create_redis


@pytest.mark.redis
def test_a_connection_lost_just_before_a_command(redis_url: str) -> None:
    """Not even the event loop's own error gets through; the next command connects.

    The moment cannot be hit from outside: after the pool has looked at the connection,
    and before the command is written to it.
    """

    async def check() -> None:
        client = create_redis(redis_url)
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
    client = create_redis(url)
    connection = client.connection_pool.make_connection()
    assert isinstance(connection, kind)
    with pytest.raises(RedisConnectionError):
        await client.ping()
    await client.aclose()
