"""REST: what an instrument did, as far back as the archive goes."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import unavailable
from gateway.http.schemas import History
from gateway.http.time_slice import in_slices
from gateway.rest.archive_gaps import gaps_object
from gateway.rest.instruments import InstrumentKey
from gateway.rest.paced_points import paced_points, whole_from, whole_until
from gateway.rest.selection import resolve
from gateway.upstream.archive_visit import visiting
from gateway.upstream.archived_windows import ArchivedWindows, ArchiveUnreadable
from gateway.upstream.instrument_history import InstrumentHistory, Point

if TYPE_CHECKING:
    from archive.parquet.archive_reader import ArchivedPoint

MOST_POINTS = 20_000
"""Most windows one request may ask for: more than a day of trading has."""

From = Annotated[
    int | None,
    Query(
        alias="from",
        ge=0,
        le=LATEST_MS,
        description="begin with the first window that ends then or later, ms; without "
        "it the newest windows are told",
    ),
]
To = Annotated[
    int | None,
    Query(
        alias="to",
        ge=0,
        le=LATEST_MS,
        description="the last window ends then or earlier, ms",
    ),
]


def create_router(
    archived: ArchivedWindows,
    memory: InstrumentHistory,
    permit: Permit,
    answer: ConditionalAnswers,
    builds: Builds,
) -> APIRouter:
    """Build the router of histories: the archive, and what is newer than it."""
    router = APIRouter(tags=["quotes"])

    @router.get(
        "/v1/quotes/{instrument}/history",
        responses=answers(
            History,
            *(400, 401, 403, 404, 503),
            description="The instrument's history",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_quote_history(
        request: Request,
        instrument: InstrumentKey,
        from_ms: From = None,
        to_ms: To = None,
        limit: Annotated[
            int, Query(ge=1, le=MOST_POINTS, description="most windows")
        ] = 1_000,
    ) -> Response:
        """An instrument's windows with trades, oldest first; days back if archived."""
        caller = permit(request)
        isin = resolve(instrument, caller.instruments)
        caller.check_allowed(isin, instrument)
        asked = from_ms, to_ms, limit
        work = _history(archived, memory, builds, caller, isin, *asked)
        return answer.give(request, await builds.awaited(request, work))

    return router


async def _history(
    archived: ArchivedWindows,
    memory: InstrumentHistory,
    builds: Builds,
    caller: Caller,
    isin: str,
    from_ms: int | None,
    to_ms: int | None,
    limit: int,
) -> bytes:
    interval_ms = caller.interval_ms
    from_ms = whole_from(from_ms, interval_ms)
    to_ms = whole_until(caller.until_ms(to_ms), interval_ms)
    # Of an interval one point is left: all of it is read.
    most = MOST_POINTS if interval_ms else limit
    try:
        with visiting(caller.address, caller.charge):
            # Before what is in memory: a window that is stored meanwhile is in both.
            stored_ms, stored, gaps = await archived.history(
                isin, from_ms, to_ms, most + 1
            )
    except ArchiveUnreadable as error:
        raise unavailable(str(error)) from None
    upto_ms = max(stored_ms, memory.upto_ms)
    async with builds.turn(caller):
        points: dict[int, ArchivedPoint | Point] = {p.window: p for p in stored}
        recent = islice(memory.newest_first(isin, to_ms), MOST_POINTS)
        async for point in in_slices(recent):
            # Of the archive's newest window a part may have come later.
            is_newer = point.window >= stored_ms or point.window not in points
            if (from_ms or 0) <= point.window and is_newer:
                points[point.window] = point
        caller.charge(len(points))
        newest_first = [points[window] for window in sorted(points, reverse=True)]
        paced = paced_points(newest_first, interval_ms, upto_ms)
        told = [point async for point in in_slices(paced)][::-1]
        if interval_ms and len(stored) > most:
            # Of the interval where reading ended a part alone is here.
            told = told[1:] if from_ms is None else told[:-1]
        chosen = told[-limit:] if from_ms is None else told[:limit]
        bodies = [point.encode() async for point in in_slices(chosen)]
    is_cut = from_ms is not None and len(told) > limit
    return b'{"isin":"%b","count":%d,"next":%b,"gaps":%b,"data":[%b]}' % (
        isin.encode(),
        len(chosen),
        b"%d" % told[limit].window if is_cut else b"null",
        gaps_object(gaps),
        b",".join(bodies),
    )
