"""When markets trade, ``/v1/market-hours``."""

import time

import orjson
from fastapi import APIRouter, Request, Response

from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import answers, conditional
from gateway.http.schemas import MarketHoursAnswer
from ingest.market_hours.hours import MarketHours


def create_router(hours: MarketHours) -> APIRouter:
    """Build the router of market hours: no prices, so nobody needs a token."""
    router = APIRouter()
    answer = ConditionalAnswers(varies=False)

    @router.get(
        "/v1/market-hours",
        tags=["version"],
        responses=answers(
            MarketHoursAnswer, description="Each market", is_conditional=True
        ),
        openapi_extra=conditional(needs_token=False),
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

    return router
