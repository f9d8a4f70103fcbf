"""REST: the newest day of every instrument, in short. One answer serves a board."""

from collections.abc import Sequence

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.admission.work import ROWS_A_DAY
from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers, Prepared, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.problems import Problem
from gateway.http.schemas import DaysAnswer
from gateway.http.time_slice import in_slices
from gateway.rest.day_statistics import encode_prices
from gateway.stream.board import Board
from gateway.upstream.analytics_store import AnalyticsStore

NO_DAYS = "no days are published here: the analytics job has not run"


def create_router(
    board: Board,
    found: AnalyticsStore,
    permit: Permit,
    answer: ConditionalAnswers,
    builds: Builds,
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
        """The prices of the newest day of every instrument that has a quote."""
        caller = permit(request)
        caller.check_every_moment_allowed()
        version = await found.days_version()
        if version is None:
            raise Problem(404, "no_analytics", NO_DAYS)
        position = board.position
        name = f"{position.epoch}:{position.offset} {version}"
        etag = make_etag(name.encode(), caller.encode_rights())

        async def build() -> bytes:
            return await builds.build_once(
                request,
                caller,
                prepared,
                position,
                etag,
                lambda: _list_days(board.isins(), caller, found),
            )

        return await answer.give_named(request, etag, build)

    return router


async def _list_days(
    isins: Sequence[str], caller: Caller, found: AnalyticsStore
) -> bytes:
    """Read and encode the days in pieces: the event loop goes on in between."""
    allowed = [isin async for isin in in_slices(filter(caller.allows, isins))]
    caller.charge(ROWS_A_DAY * len(allowed))
    days = await found.days(allowed)
    bodies = [body async for body in in_slices(map(encode_prices, days.values()))]
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
