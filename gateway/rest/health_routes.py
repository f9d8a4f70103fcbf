"""Health: does the process answer, is it ready, and if not why and since when."""

from dataclasses import asdict
from typing import Any

import orjson
from fastapi import APIRouter
from fastapi.responses import Response

from gateway.backend import Backend
from gateway.http.openapi import answers
from gateway.http.schemas import Live, NotReady, Ready

NOT_READY_RESPONSE: dict[int | str, dict[str, Any]] = {
    503: {
        "model": NotReady,
        "description": "Not ready, and why",
    }
}


def create_router(backend: Backend, *, for_operators: bool) -> APIRouter:
    """Build the routes for load balancers; operators are told of clients too."""
    router = APIRouter(tags=["health"])
    board, hub = backend.stream.board, backend.stream.hub

    @router.get(
        "/health/live",
        name="get_live",
        responses=answers(Live, description="It does"),
    )
    async def live() -> Response:
        """Whether the process answers."""
        return Response(b'{"live":true}', media_type="application/json")

    @router.get(
        "/health/ready",
        name="get_ready",
        responses=answers(Ready, description="All is well") | NOT_READY_RESPONSE,
    )
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
        if for_operators:
            body |= {"clients": hub.streams, "counters": backend.stream.totals.read()}
        status = 503 if reasons else 200
        return Response(orjson.dumps(body), status, media_type="application/json")

    return router
