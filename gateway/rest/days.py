"""REST: the newest day of every issue, in short. One answer serves a whole board."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.admission.tokens import TokenGrant
from gateway.http.authorization import Permit
from gateway.http.conditional import ConditionalAnswers, Prepared, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.problems import Problem
from gateway.http.schemas import DaysAnswer
from gateway.rest.day_statistics import encode_prices
from gateway.stream.board import Board
from gateway.upstream.analytics_store import DAYS_PIECE, AnalyticsStore

NO_DAYS = "no days are published here: the analytics job has not run"


def create_router(
    board: Board, found: AnalyticsStore, permit: Permit, answer: ConditionalAnswers
) -> APIRouter:
    """Build the router of days."""
    router = APIRouter(tags=["analytics"])
    prepared = Prepared()

    @router.get(
        "/v1/days",
        responses=answers(
            DaysAnswer,
            *(401, 403, 404, 503),
            description="The newest days",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_days(request: Request) -> Response:
        """The prices of each issue's newest day: of every issue that has a quote."""
        grant = permit(request)
        version = await found.days_version()
        if version is None:
            raise Problem(404, "no_analytics", NO_DAYS)
        position = board.position
        name = f"{position.epoch}:{position.offset} {version}"
        etag = make_etag(name.encode(), grant.encode_keys())

        async def build() -> bytes:
            body = prepared.find(position, etag)
            if body is None:
                body = await _list_days(board.isins(), grant, found)
                prepared.keep(position, etag, body)
            return body

        return await answer.give_named(request, etag, build)

    return router


async def _list_days(
    isins: Sequence[str], grant: TokenGrant, found: AnalyticsStore
) -> bytes:
    """Read and encode the days in pieces: the event loop goes on in between."""
    allowed = [isin for isin in isins if grant.allows(isin)]
    bodies: list[bytes] = []
    for first in range(0, len(allowed), DAYS_PIECE):
        days = await found.days(allowed[first : first + DAYS_PIECE])
        bodies += map(encode_prices, days.values())
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
