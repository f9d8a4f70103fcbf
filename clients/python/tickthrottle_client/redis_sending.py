"""Sends commands to Redis on an event loop: a cancelled task ends, always."""

import asyncio
from collections.abc import Iterable
from typing import cast

from redis.asyncio import Redis
from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ConnectionError as RedisConnectionError


def send_safely(client: Redis) -> Redis:
    """Have every connection of ``client`` send as ``_Sending`` does; return it."""
    pool = client.connection_pool
    # TCP, TLS or a Unix socket, or what Sentinels say: as the address says.
    kind = type("Connection", (_Sending, pool.connection_class), {})
    pool.connection_class = cast("type[AbstractConnection]", kind)
    return client


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
        """Send a command. Raises RedisError, and CancelledError if it is cancelled."""
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
