"""Connects to the server that an address names, or to the primary Sentinels name.

With Sentinels every new connection asks them first, one after the other. A connection
that a demoted primary has refused a write on is given up. So after a fail-over whoever
tries again is at the new primary, and nobody else needs to know of Sentinel.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, cast

import redis
from redis import asyncio as aioredis
from redis.asyncio.connection import AbstractConnection, parse_url
from redis.asyncio.retry import Retry as AsyncRetry
from redis.asyncio.sentinel import Sentinel as AsyncSentinel
from redis.asyncio.sentinel import SentinelConnectionPool as AsyncSentinelPool
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.retry import Retry
from redis.sentinel import Sentinel, SentinelConnectionPool

from tickthrottle_client.redis_address import SentinelAddress

_ASK_WITHIN_S = 1.0
"""How long a Sentinel may take before the next one is asked."""


def connect(url: str, **options: Any) -> redis.Redis:
    """Return a client of the server at ``url``; nothing is asked of it yet.

    ``options`` are the client's own, for the server. Commands raise redis.RedisError;
    ConnectionError also where no Sentinel knows a primary.
    """
    address = SentinelAddress.parse(url)
    if address is None:
        return redis.Redis.from_url(url, **options)
    retry = Retry(NoBackoff(), 0)
    client = _of_primary(address, Sentinel, _Pool, retry, options)
    return cast("redis.Redis", client)


def connect_async(url: str, **options: Any) -> aioredis.Redis:
    """Return a client for an event loop, as ``connect`` does.

    A task that is cancelled while it sends a command ends, always.
    """
    address = SentinelAddress.parse(url)
    if address is None:
        client = aioredis.Redis.from_url(url, **options)
    else:
        retry = AsyncRetry(NoBackoff(), 0)
        client = _of_primary(address, AsyncSentinel, _AsyncPool, retry, options)
    pool = client.connection_pool
    # TCP, TLS or a Unix socket, or what Sentinels say: as the address says.
    sending = type("Connection", (_Sending, pool.connection_class), {})
    pool.connection_class = cast("type[AbstractConnection]", sending)
    return client


class _Pool(SentinelConnectionPool):
    """Disconnects from the Sentinels, too."""

    def disconnect(self, inuse_connections: bool = True) -> None:
        super().disconnect(inuse_connections)
        for client in self.sentinel_manager.sentinels:
            client.connection_pool.disconnect(inuse_connections)


class _AsyncPool(AsyncSentinelPool):
    """Disconnects from the Sentinels, too."""

    async def disconnect(self, inuse_connections: bool = True) -> None:
        await super().disconnect(inuse_connections)
        for client in self.sentinel_manager.sentinels:
            await client.connection_pool.disconnect(inuse_connections)


class _Sending(AbstractConnection):
    """Mends two faults of what a command is sent with.

    uvloop raises a bare RuntimeError ("the handler is closed") where a connection was
    lost just before; nobody expects that of Redis. Up to Python 3.11 asyncio.wait_for
    forgets that its task was cancelled where what it waits for has just ended; the task
    would go on, and whoever waits for its end would wait for ever.
    """

    async def send_packed_command(
        self, command: bytes | str | Iterable[bytes], check_health: bool = True
    ) -> None:
        task = asyncio.current_task()
        cancelled = 0 if task is None else task.cancelling()
        try:
            await super().send_packed_command(command, check_health)
        except RuntimeError as error:
            raise RedisConnectionError(f"Connection lost: {error}") from error
        if task is not None and task.cancelling() > cancelled:
            # Its answer would be taken for that of the next command.
            await self.disconnect(nowait=True)
            raise asyncio.CancelledError


def _of_primary(
    address: SentinelAddress,
    kind: Any,
    pool: type[Any],
    retry: Retry | AsyncRetry,
    options: dict[str, Any],
) -> Any:
    of_sentinels = {
        **_without_place(parse_url(address.sentinel_url)),
        "socket_timeout": _ASK_WITHIN_S,
        "socket_connect_timeout": _ASK_WITHIN_S,
        "retry": retry,
    }
    sentinel = kind(address.sentinels, sentinel_kwargs=of_sentinels)
    of_primary = _without_place(parse_url(address.primary_url))
    return sentinel.master_for(
        address.name, connection_pool_class=pool, **{**of_primary, **options}
    )


def _without_place(options: Any) -> dict[str, Any]:
    """Return what an address says of a connection, but where it goes."""
    rest = {name: value for name, value in options.items() if name != "host"}
    is_tls = "SSL" in getattr(rest.pop("connection_class", None), "__name__", "")
    return {**rest, "ssl": True} if is_tls else rest
