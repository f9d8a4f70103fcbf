"""The application: what serves the public port, what the operators', on one screen."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import structlog
from fastapi import FastAPI
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from gateway import health_routes, ops, rest, sse
from gateway.backend import Backend
from gateway.headers import SecurityHeaders
from gateway.openapi import PATH, describe, name_operation
from gateway.operators import OperatorGuard
from gateway.problems import handlers
from gateway.settings import GatewaySettings
from gateway.websocket import StreamEndpoint

STATIC = Path(__file__).parent / "static"

log = structlog.get_logger()


class GatewayApp:
    """Sends a connection to the stream, or to the application of the port it came to.

    What is around a route costs a stream memory: there is nothing around it.
    ``operators_port`` is set once the port is known; nobody is an operator before.
    """

    def __init__(self, backend: Backend) -> None:
        self.has_failed = False
        self.operators_port: int | None = None
        self._backend = backend
        self._stream = StreamEndpoint(backend.hub)
        self._public = create_public_app(backend)
        self._public.router.lifespan_context = self._lifespan
        self._operators = create_operators_app(backend)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or a WebSocket for as long as it lasts."""
        if scope["type"] == "websocket":
            if self._is_misled(scope):
                # Before it is accepted: the upgrade is refused with 403.
                await receive()
                await send({"type": "websocket.close"})
                return
            await self._stream(scope, receive, send)
            return
        if scope["type"] == "http":
            await self._backend.hub.served()
        if self._is_operators(scope):
            await self._operators(scope, receive, send)
        else:
            await self._public(scope, receive, send)

    def _is_operators(self, scope: Scope) -> bool:
        # The socket's own address, whatever the request says of itself.
        server = scope.get("server")
        return server is not None and server[1] == self.operators_port

    def _is_misled(self, scope: Scope) -> bool:
        if not self._is_operators(scope):
            return False
        access = self._backend.access
        return access.refusal("GET", Headers(scope=scope)) is not None

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        async with self._backend.running(self.stop_server_on_failure):
            yield

    def stop_server_on_failure(self, task: asyncio.Task[None]) -> None:
        """Take the process down: better gone than serving old prices."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.has_failed = True
            log.error(f"{task.get_name()} died, stopping", exc_info=error)
            signal.raise_signal(signal.SIGTERM)


def create_app(settings: GatewaySettings) -> GatewayApp:
    """Build the gateway. It starts without Redis and says so under /health/ready.

    Raises ValueError if a file named in the settings cannot be read.
    """
    return GatewayApp(Backend(settings))


def create_public_app(backend: Backend) -> FastAPI:
    """Build what everybody may ask for, with the market board at ``/``."""
    app = _create_app("tickthrottle", for_operators=False)
    _include_public(app, backend, for_operators=False)
    _add_page(app, "/", "index.html")
    return app


def create_operators_app(backend: Backend) -> FastAPI:
    """Build what operators may ask for, with the operations view at ``/``."""
    app = _create_app("tickthrottle for operators", for_operators=True)
    _include_public(app, backend, for_operators=True)
    app.include_router(ops.create_router(backend))
    _add_page(app, "/", "operations.html")
    _add_page(app, "/market", "index.html")
    app.add_middleware(OperatorGuard, access=backend.access)
    return app


def _create_app(title: str, *, for_operators: bool) -> FastAPI:
    # No interactive API pages: they load their scripts from elsewhere.
    app = FastAPI(
        title=title,
        openapi_url=PATH,
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=name_operation,
        exception_handlers=handlers(),
    )
    describe(app, rest.read_version(), for_operators=for_operators)
    app.add_middleware(SecurityHeaders)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _include_public(app: FastAPI, backend: Backend, *, for_operators: bool) -> None:
    access = backend.access if for_operators else None
    app.include_router(sse.create_router(backend.hub, access))
    app.include_router(rest.create_router(backend, access))
    app.include_router(
        health_routes.create_router(backend, for_operators=for_operators)
    )


def _add_page(app: FastAPI, path: str, file: str) -> None:
    @app.get(path, include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / file)
