"""Windows to publish, and the gateway that shows them at an address of its own."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import redis

from tests.gateway.publisher import Publisher
from tests.gateway.servers import running_gateway
from tests.ports import free_port


class Board(Publisher):
    def __init__(self, client: redis.Redis, redis_url: str) -> None:
        super().__init__(client)
        self._redis_url = redis_url
        self.port = free_port()
        self.url = address(self.port)

    def gateway(self, **settings: Any) -> AbstractAsyncContextManager[Any]:
        return gateway_on(self._redis_url, self.port, **settings)


@asynccontextmanager
async def gateway_on(url: str, port: int, **settings: Any) -> AsyncIterator[Any]:
    context = running_gateway(url, port=port, **{"heartbeat_ms": 200, **settings})
    running = await asyncio.to_thread(context.__enter__)
    try:
        yield running
    finally:
        await asyncio.to_thread(context.__exit__, None, None, None)


def address(port: int) -> str:
    return f"ws://127.0.0.1:{port}/v1/stream"
