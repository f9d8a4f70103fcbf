"""REST: what everybody may ask for. Prices keep their exact text."""

import time
from dataclasses import asdict
from typing import Any

import orjson
from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.backend import Backend
from gateway.http.authorization import create_permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import PRODUCT, conditional, described, read_version
from gateway.http.operator_access import OperatorAccess
from gateway.http.problems import Problem, json_answer
from gateway.http.routers import new_router
from gateway.http.schemas import Live, MarketHoursAnswer, NotReady, Ready, Version
from gateway.rest import (
    bar_routes,
    groups,
    instruments,
    quote_history,
    quotes,
    statuses,
    trends,
    windows,
)
from gateway.rest.rest_parts import RestParts
from gateway.settings import GatewaySettings
from ingest.market_hours.hours import MarketHours
from tickthrottle_client.tick_v1 import PROTOCOL

SUBJECTS = (
    instruments,
    quotes,
    statuses,
    groups,
    quote_history,
    trends,
    bar_routes,
    windows,
)


def create_routers(backend: Backend, access: OperatorAccess | None) -> list[APIRouter]:
    """Build the routers of instruments, quotes, groups, windows, bars and health.

    ``access`` is given on the operators' listener, None on the public one.
    """
    hub, for_operators = backend.stream.hub, access is not None
    rest = RestParts(
        create_permit(hub, access),
        ConditionalAnswers(
            varies=hub.tokens is not None, may_be_shared=not for_operators
        ),
        backend.stream.board,
        hub.status_desk.board,
        backend.stores,
        # Who asks for the board shall not wait for who looks far back.
        quick=Builds(hub.counters),
        deep=Builds(hub.counters),
    )
    return [
        _of_facts(backend.settings, for_operators=for_operators),
        *(subject.create_router(rest) for subject in SUBJECTS),
        _of_health(backend, for_operators=for_operators),
    ]


def pages_of(settings: GatewaySettings, *, for_operators: bool) -> list[str]:
    """Return the paths of a port's web pages."""
    pages = ["/", "/market"] if for_operators else ["/"]
    if settings.has_firehose and (for_operators or settings.firehose_public):
        pages.append("/firehose")
    return pages


def _of_facts(settings: GatewaySettings, *, for_operators: bool) -> APIRouter:
    """Build the router of what has no prices in it, so that nobody needs a token."""
    router = new_router("version")
    hours = MarketHours.parse(settings.market_hours)
    answer = ConditionalAnswers(varies=False)
    version = orjson.dumps(
        {
            "name": PRODUCT,
            "version": read_version(),
            "protocol": PROTOCOL,
            "pages": pages_of(settings, for_operators=for_operators),
        }
    )

    @router.get("/v1/version", **conditional(Version, "The version", extra={}))
    async def get_version(request: Request) -> Response:
        """What answers, and which stream protocol it speaks."""
        return answer.give(request, version)

    @router.get(
        "/v1/market-hours", **conditional(MarketHoursAnswer, "Each market", extra={})
    )
    async def get_market_hours(request: Request) -> Response:
        """Which markets are open, until when, and when they open; none is known: []."""
        data = [
            {
                "market": state.market,
                "zone": state.zone,
                "open": state.is_open,
                "closes": state.closes_ms,
                "opens": state.opens_ms,
            }
            for state in hours.states(time.time_ns() // 1_000_000)
        ]
        return answer.give(request, orjson.dumps({"count": len(data), "data": data}))

    # Not in the document: asyncapi.yaml describes what is there.
    @router.get("/v1/stream", include_in_schema=False)
    async def stream_needs_an_upgrade() -> Response:
        raise Problem(
            426,
            "upgrade_required",
            "the stream is a WebSocket; over plain HTTP it is /v1/sse",
            {"Upgrade": "websocket", "Connection": "Upgrade"},
        )

    return router


def _of_health(backend: Backend, *, for_operators: bool) -> APIRouter:
    """Build the router for load balancers; operators are told of clients too."""
    router = new_router("health")
    board, hub = backend.stream.board, backend.stream.hub
    not_ready = {"model": NotReady, "description": "Not ready, and why"}
    about_ready = described(Ready, "All is well")
    about_ready["responses"][503] = not_ready

    @router.get("/health/live", name="get_live", **described(Live, "It does"))
    async def live() -> Response:
        """Whether the process answers."""
        return json_answer({"live": True})

    @router.get("/health/ready", name="get_ready", **about_ready)
    async def ready() -> Response:
        """Whether windows arrive, trades do, and the books balance."""
        # Redis is asked twice a second: whoever asks costs it nothing, and never waits.
        reasons = backend.health.reasons()
        text = "; ".join(reason.message for reason in reasons)
        body: dict[str, Any] = {
            "ready": not reasons,
            **({"reason": text} if reasons else {}),
            "reasons": [asdict(reason) for reason in reasons],
            **asdict(board.position),
            "instruments": len(board),
        }
        if (upstream := backend.health.upstream()) is not None:
            names = ("url", "levels", "behind")
            body["upstream"] = {name: getattr(upstream, name) for name in names}
        if for_operators:
            body |= {"clients": hub.streams, "counters": backend.stream.totals.read()}
        return json_answer(body, 503 if reasons else 200)

    return router
