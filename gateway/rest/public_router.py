"""REST: what everybody may ask for. Prices keep their exact text."""

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.admission.bounds import MOST_WINDOWS
from gateway.backend import Backend
from gateway.http.authorization import create_permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import PRODUCT, answers, conditional, read_version
from gateway.http.operator_access import OperatorAccess
from gateway.http.problems import Problem
from gateway.http.schemas import Version
from gateway.rest import (
    bar_routes,
    days,
    groups,
    instruments,
    market_hours,
    quote_history,
    quotes,
    windows,
)
from gateway.settings import GatewaySettings
from ingest.market_hours.hours import MarketHours
from tickthrottle_client.tick_v1 import PROTOCOL


def create_router(backend: Backend, access: OperatorAccess | None) -> APIRouter:
    """Build the router of instruments, quotes, groups, windows and bars.

    ``access`` is given on the operators' listener, None on the public one.
    """
    router = APIRouter()
    hub, board, stores = backend.stream.hub, backend.stream.board, backend.stores
    permit = create_permit(hub, access)
    answer = ConditionalAnswers(varies=hub.tokens is not None)
    _add_version(router, pages_of(backend.settings, for_operators=access is not None))
    _add_upgrade(router)
    hours = MarketHours.parse(backend.settings.market_hours)
    router.include_router(market_hours.create_router(hours))
    analytics, archived, history = stores.analytics, stores.archived, stores.history
    # Who asks for the board shall not wait for who looks far back.
    quick, deep = Builds(hub.counters), Builds(hub.counters)
    common = permit, answer
    router.include_router(instruments.create_router(history, *common, quick))
    router.include_router(quotes.create_router(analytics, *common, quick))
    router.include_router(groups.create_router(*common))
    router.include_router(quote_history.create_router(archived, history, *common, deep))
    router.include_router(
        bar_routes.create_router(stores.bars, analytics, archived, *common, deep)
    )
    router.include_router(days.create_router(board, analytics, *common, quick))
    router.include_router(
        windows.create_router(
            *(board, stores.window_log, archived),
            MOST_WINDOWS,
            *common,
            deep,
        )
    )
    return router


def pages_of(settings: GatewaySettings, *, for_operators: bool) -> list[str]:
    """Return the paths of a port's web pages."""
    pages = ["/", "/market"] if for_operators else ["/"]
    if settings.has_firehose and (for_operators or settings.firehose_public):
        pages.append("/firehose")
    return pages


def _add_version(router: APIRouter, pages: list[str]) -> None:
    body = orjson.dumps(
        {
            "name": PRODUCT,
            "version": read_version(),
            "protocol": PROTOCOL,
            "pages": pages,
        }
    )
    answer = ConditionalAnswers(varies=False)

    @router.get(
        "/v1/version",
        tags=["version"],
        responses=answers(Version, description="The version", is_conditional=True),
        openapi_extra=conditional(needs_token=False),
    )
    async def get_version(request: Request) -> Response:
        """What answers, and which stream protocol it speaks."""
        return answer.give(request, body)


def _add_upgrade(router: APIRouter) -> None:
    # Not in the document: asyncapi.yaml describes what is there.
    @router.get("/v1/stream", include_in_schema=False)
    async def stream_needs_an_upgrade() -> Response:
        raise Problem(
            426,
            "upgrade_required",
            "the stream is a WebSocket; over plain HTTP it is /v1/sse",
            {"Upgrade": "websocket", "Connection": "Upgrade"},
        )
