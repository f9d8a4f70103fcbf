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
from starlette.middleware.cors import CORSMiddleware
from starlette.types import Receive, Scope, Send

from gateway.admission.bounds import BOUNDS, Bounds
from gateway.admission.limits import Budgets
from gateway.admission.shared_figures import Seat
from gateway.backend import Backend
from gateway.http.compression import Compression
from gateway.http.head import HeadAnswers
from gateway.http.openapi import PATH, describe
from gateway.http.operator_access import OperatorAccess, OperatorGuard
from gateway.http.problems import handlers, problem
from gateway.http.request_budget import RequestBudget
from gateway.http.routers import add_routes
from gateway.http.security_headers import SecurityHeaders
from gateway.operators import operators_router
from gateway.operators.firehose import firehose_routes
from gateway.operators.firehose.firehose_reader import Firehose
from gateway.rest import public_router
from gateway.settings import GatewaySettings
from gateway.transport import sse
from gateway.transport.bounded_answers import BoundedAnswers
from gateway.transport.relay_endpoint import RelayEndpoint
from gateway.transport.websocket import StreamEndpoint
from gateway.upstream.relay.relay_frames import PATH as RELAY_PATH
from ingest.process.abandoned_handshake import ignore_abandoned_handshakes

STATIC = Path(__file__).parents[1] / "pages"

CLIENT = ("/static/tick.js", "/static/tick-chain.js")
"""Pages of other hosts import them; each is a file for itself."""

PREFLIGHT_LASTS_S = 600
"""For this long a browser does not ask again whether it may send its request."""

log = structlog.get_logger()


class GatewayApp:
    """Sends a connection to the stream, or to the application of the port it came to.

    What is around a route costs a stream memory: there is nothing around it.
    ``operators_port`` is set once the port is known; nobody is an operator before.
    """

    def __init__(self, backend: Backend) -> None:
        self.has_failed = False
        self.operators_port: int | None = None
        self.counters = backend.stream.counters
        self.seat = backend.seat
        self._backend = backend
        stream = backend.stream
        self._stream = StreamEndpoint(stream.hub)
        self._relay = RelayEndpoint(stream.hub, stream.feed, stream.kept, stream.own_id)
        firehose = firehose_routes.create_firehose(backend)
        self._public = create_public_app(backend, firehose)
        self._public.router.lifespan_context = self._lifespan
        self._operators = create_operators_app(backend, firehose)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or a WebSocket for as long as it lasts."""
        # The socket's own address, whatever the request says of itself.
        server = scope.get("server")
        is_operators = server is not None and server[1] == self.operators_port
        if scope["type"] == "websocket":
            access, refusal = self._backend.access, None
            if is_operators:
                refusal = access.refusal("GET", Headers(scope=scope))
            if refusal is not None:
                await receive()
                await problem(403, "not_allowed", refusal)(scope, receive, send)
                return
            endpoint = self._relay if scope["path"] == RELAY_PATH else self._stream
            await endpoint(scope, receive, send)
            return
        if scope["type"] == "http":
            await self._backend.stream.hub.served()
        app = self._operators if is_operators else self._public
        await app(scope, receive, send)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        ignore_abandoned_handshakes()
        async with self._backend.running(self.stop_server_on_failure):
            yield

    def stop_server_on_failure(self, task: asyncio.Task[None]) -> None:
        """Take the process down: better gone than serving old prices."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.has_failed = True
            log.error(f"{task.get_name()} died, stopping", exc_info=error)
            signal.raise_signal(signal.SIGTERM)


def create_app(
    settings: GatewaySettings,
    seat: Seat | None = None,
    folder: Path | None = None,
    bounds: Bounds = BOUNDS,
) -> GatewayApp:
    """Build the gateway. It starts without Redis and says so under /health/ready.

    ``seat`` and ``folder`` are a worker's, see ``Backend``. Raises ValueError if a file
    named in the settings cannot be read.
    """
    return GatewayApp(Backend(settings, seat, folder, bounds))


def create_public_app(backend: Backend, firehose: Firehose) -> FastAPI:
    """Build what everybody may ask for, with the market board at ``/``."""
    app = _create_app("tickthrottle", for_operators=False)
    _include_public(app, backend, for_operators=False)
    _add_page(app, "/", "index.html")
    settings, seat = backend.settings, backend.seat
    if settings.firehose_public:
        _add_firehose(app, backend, firehose, None)
    _bound(app, backend)
    app.add_middleware(
        RequestBudget,
        rate_per_s=settings.requests_per_second,
        budgets=Budgets(
            *(settings.requests_per_second, settings.request_burst),
            *(seat.request_moments, seat.key),
        ),
        counters=backend.stream.counters,
        turns=backend.stream.hub.turns,
    )
    if settings.allowed_origins:
        # Around the budget: a page is to know that it was told to come later.
        # Who is refused gets the answer; the browser withholds it from the page.
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allowed_origins,
            allow_methods=("GET", "HEAD"),
            allow_headers=("Authorization", "If-None-Match", "Last-Event-ID"),
            expose_headers=("ETag", "Retry-After"),
            max_age=PREFLIGHT_LASTS_S,
        )
    # A page that is not listed gets the client, too: it is what tells the page so.
    app.add_middleware(SecurityHeaders, open_files=CLIENT)
    return app


def create_operators_app(backend: Backend, firehose: Firehose) -> FastAPI:
    """Build what operators may ask for, with the operations view at ``/``."""
    app = _create_app("tickthrottle for operators", for_operators=True)
    _include_public(app, backend, for_operators=True)
    add_routes(app, operators_router.create_router(backend))
    _add_page(app, "/", "operations.html")
    _add_page(app, "/market", "index.html")
    _add_firehose(app, backend, firehose, backend.access)
    _bound(app, backend)
    app.add_middleware(OperatorGuard, access=backend.access)
    app.add_middleware(SecurityHeaders)
    return app


def _create_app(title: str, *, for_operators: bool) -> FastAPI:
    # No interactive API pages: they load their scripts from elsewhere.
    app = FastAPI(
        title=title,
        openapi_url=PATH,
        docs_url=None,
        redoc_url=None,
        exception_handlers=handlers(),
    )
    describe(app, for_operators=for_operators)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
    return app


def _bound(app: FastAPI, backend: Backend) -> None:
    """Have answers leave compressed and bounded; what is added last is outermost."""
    app.add_middleware(Compression)
    app.add_middleware(HeadAnswers)
    app.add_middleware(
        BoundedAnswers,
        in_flight=backend.in_flight,
        counters=backend.stream.counters,
        patience_s=backend.bounds.slow_close_s,
    )


def _include_public(app: FastAPI, backend: Backend, *, for_operators: bool) -> None:
    access = backend.access if for_operators else None
    add_routes(app, sse.create_router(backend.stream.hub, access))
    add_routes(app, *public_router.create_routers(backend, access))


def _add_firehose(
    app: FastAPI, backend: Backend, firehose: Firehose, access: OperatorAccess | None
) -> None:
    add_routes(app, firehose_routes.create_router(backend, firehose, access))
    _add_page(app, "/firehose", "firehose.html")


def _add_page(app: FastAPI, path: str, file: str) -> None:
    @app.get(path, include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / file)
