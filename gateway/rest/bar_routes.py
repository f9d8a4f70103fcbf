"""REST: bars of an issue, and what the analytics job has found in the market."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.http.authorization import Permit, check_allowed, check_everything_allowed
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import Problem
from gateway.http.schemas import BarsAnswer, BurstsAnswer, MoversAnswer, MovesAnswer
from gateway.rest.archive_gaps import gaps_object
from gateway.rest.issues import IssueKey, Known
from gateway.rest.selection import resolve
from gateway.upstream.analytics_store import AnalyticsStore
from gateway.upstream.archived_windows import ArchivedWindows, ArchiveUnreadable
from gateway.upstream.bar_store import BarStore

MOST_BARS = 1_000
"""So many bars are in an answer at most: 300 KiB."""

MOST_FOUND = 500

Interval: TypeAlias = Literal["1m", "5m", "15m", "1h", "1d"]

Limit = Annotated[int, Query(ge=1, le=MOST_FOUND, description="most of them")]

NO_BARS = "no bars are published here: the analytics job has not run"


def create_router(
    store: BarStore,
    found: AnalyticsStore,
    archived: ArchivedWindows,
    known: Known,
    permit: Permit,
    answer: ConditionalAnswers,
) -> APIRouter:
    """Build the router of bars, movers, bursts and moves."""
    router = APIRouter(tags=["analytics"])

    @router.get(
        "/v1/bars/{issue}",
        responses=answers(
            BarsAnswer,
            *(400, 401, 403, 404, 503),
            description="The bars, oldest first",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_bars(
        request: Request,
        issue: IssueKey,
        interval: Annotated[Interval, Query(description="how long a bar is")] = "1m",
        from_ms: Annotated[
            int | None,
            Query(alias="from", ge=0, le=LATEST_MS, description="earliest start, ms"),
        ] = None,
        to_ms: Annotated[
            int | None,
            Query(alias="to", ge=0, le=LATEST_MS, description="latest start, ms"),
        ] = None,
        limit: Annotated[
            int, Query(ge=1, le=MOST_BARS, description="most bars: the newest ones")
        ] = 300,
    ) -> Response:
        """An issue's newest bars; ``from`` and ``to`` bound their starts.

        As far back as the analytics job keeps them, and then the archive, if there is
        one: a year.
        """
        grant = permit(request)
        isin = resolve(issue, known())
        check_allowed(grant, isin)
        progress = await store.progress()
        if progress is None:
            raise Problem(404, "no_analytics", NO_BARS)
        try:
            bars = await store.last(isin, interval, limit, progress, from_ms, to_ms)
            oldest_ms = bars[0].start_ms if len(bars) == limit else from_ms
            missing = await archived.damaged("bars", oldest_ms, to_ms)
        except ArchiveUnreadable as error:
            raise Problem(503, "unavailable", str(error)) from None
        bodies = b",".join(bar.body() for bar in bars)
        head = b'{"isin":"%b","interval":"%b"' % (isin.encode(), interval.encode())
        gaps = gaps_object(missing)
        body = b'%b,"count":%d,"gaps":%b,"data":[%b]}' % (head, len(bars), gaps, bodies)
        return answer.give(request, body)

    @router.get(
        "/v1/movers",
        responses=answers(
            MoversAnswer,
            *(401, 403, 404, 503),
            description="The newest lists",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_movers(request: Request) -> Response:
        """What rose, fell and traded most in the newest span."""
        check_everything_allowed(permit(request))
        body = await found.movers()
        if body is None:
            detail = "no movers are published here: the analytics job has not run"
            raise Problem(404, "no_analytics", detail)
        return answer.give(request, body)

    @router.get(
        "/v1/bursts",
        responses=answers(
            BurstsAnswer,
            *(400, 401, 403, 503),
            description="The newest bursts, newest first",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_bursts(request: Request, limit: Limit = 50) -> Response:
        """Where trading has come alive, and for how long; bursts that have ended."""
        check_everything_allowed(permit(request))
        return answer.give(request, await _list(found.bursts, limit))

    @router.get(
        "/v1/moves",
        responses=answers(
            MovesAnswer,
            *(400, 401, 403, 503),
            description="The newest moves, newest first",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_moves(request: Request, limit: Limit = 50) -> Response:
        """Which prices went far within seconds."""
        check_everything_allowed(permit(request))
        return answer.give(request, await _list(found.moves, limit))

    return router


async def _list(read: Callable[[int], Awaitable[Sequence[bytes]]], limit: int) -> bytes:
    bodies = await read(limit)
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
