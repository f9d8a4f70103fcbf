"""The application: Redis, feed, hub and routes, put together on one screen."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import structlog
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.types import Receive, Scope, Send

from gateway import rest, sse
from gateway.board import Board
from gateway.books import read_ledgers
from gateway.counters import Counters
from gateway.feed import Feed, create_redis
from gateway.headers import SecurityHeaders
from gateway.hub import Hub
from gateway.settings import GatewaySettings
from gateway.websocket import StreamEndpoint
from gateway.window_log import WindowLog
from throttle.snapshot import Keys

STATIC = Path(__file__).parent / "static"

log = structlog.get_logger()


class GatewayApp(FastAPI):
    """FastAPI, and beside it the stream: what is around a route costs it memory."""

    def __init__(self, stream: StreamEndpoint, **options: Any) -> None:
        super().__init__(**options)
        self._stream = stream

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or a WebSocket for as long as it lasts."""
        if scope["type"] == "websocket":
            await self._stream(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def create_app(settings: GatewaySettings) -> GatewayApp:
    """Build the gateway. It starts without Redis and says so under /health/ready.

    Raises ValueError if the key for tokens cannot be read.
    """
    board, counters = Board(), Counters()
    hub = Hub(board, settings, counters, settings.create_token_reader())
    redis, keys = create_redis(settings.redis_url), Keys(settings.namespace)
    feed = Feed(redis, keys, board, hub, counters)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        pump = asyncio.create_task(feed.run(), name="feed")
        care = asyncio.create_task(hub.run(), name="hub")
        for task in (pump, care):
            task.add_done_callback(partial(stop_server_on_failure, app))
        await feed.first_look()
        yield
        feed.stop()
        care.cancel()
        await asyncio.wait([pump, care])
        await redis.aclose()

    # No interactive API pages: they load their scripts from elsewhere.
    app = GatewayApp(
        StreamEndpoint(hub),
        title="tickthrottle gateway",
        openapi_url=None,
        lifespan=lifespan,
        exception_handlers=rest.error_handlers(),
    )
    app.state.feed_failed = False
    app.add_middleware(SecurityHeaders)
    app.include_router(sse.create_router(hub))
    books = partial(read_ledgers, redis, keys)
    app.include_router(rest.create_router(hub, feed, WindowLog(redis, keys), books))
    app.mount("/static", StaticFiles(directory=STATIC), name="static")

    @app.get("/")
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html")

    return app


def stop_server_on_failure(app: FastAPI, task: asyncio.Task[None]) -> None:
    """Take the process down if the feed died: better gone than serving old prices."""
    error = None if task.cancelled() else task.exception()
    if error is not None:
        app.state.feed_failed = True
        log.error(f"{task.get_name()} died, stopping", exc_info=error)
        signal.raise_signal(signal.SIGTERM)
