"""The gateway's client of Redis: whatever breaks a connection is a RedisError."""

import time
from contextlib import suppress
from typing import Any

from redis.asyncio import Connection, ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoPermissionError, RedisError

from gateway.http.problems import NotServedHere
from tickthrottle_client.redis_address import why_unusable
from tickthrottle_client.redis_primary import connect_async

CONFIRM_WITHIN_S = 5.0
"""How long the server may take to confirm a subscription."""


def create_redis(url: str) -> Redis:
    """Build a client that reports a broken connection instead of hiding it.

    A subscription renewed behind our back would have lost messages unseen.
    """
    retry = Retry(NoBackoff(), 0)
    return connect_async(url, retry=retry, socket_connect_timeout=2, socket_timeout=5)


def create_no_redis(reason: str) -> Redis:
    """Build the client of a gateway without Redis: each use raises NotServedHere."""

    class _Nowhere(Connection):
        async def connect(self) -> None:
            raise NotServedHere(reason)

    return Redis(connection_pool=ConnectionPool(connection_class=_Nowhere))


async def check_server(client: Redis) -> None:
    """Raise RedisError for a server that does not stand alone, if it may be asked."""
    with suppress(NoPermissionError):
        server = await client.info("server")
        if (reason := why_unusable(server)) is not None:
            raise RedisError(reason)


async def confirm_subscription(pubsub: Any, name: str, poll_s: float) -> None:
    """Wait until a subscription holds; raise ConnectionError if it does not in time.

    What is published from then on arrives. ``name`` is for the error.
    """
    deadline_s = time.monotonic() + CONFIRM_WITHIN_S
    while time.monotonic() < deadline_s:
        message = await pubsub.get_message(timeout=poll_s)
        if message is not None and message["type"] == "subscribe":
            return
    raise RedisConnectionError(f"{name} was not confirmed")
