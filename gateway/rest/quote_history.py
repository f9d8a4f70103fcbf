"""REST: what an instrument did, as far back as the archive goes."""

from itertools import islice
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.http.authorization import Caller
from gateway.http.openapi import conditional
from gateway.http.routers import new_router
from gateway.http.schemas import History
from gateway.http.time_slice import in_slices
from gateway.rest.paced_points import paced_points, whole_from, whole_until
from gateway.rest.rest_parts import (
    InstrumentKey,
    RestParts,
    gaps_object,
    limited,
    moment,
    reading_archive,
)
from gateway.upstream.instrument_history import Point

if TYPE_CHECKING:
    from archive.parquet.archive_reader import ArchivedPoint

MOST_POINTS = 20_000
"""Most windows one request may ask for: more than a day of trading has."""

From = Annotated[
    int | None,
    moment(
        "from",
        "begin with the first window that ends then or later, ms; without it the "
        "newest windows are told",
    ),
]
To = Annotated[int | None, moment("to", "the last window ends then or earlier, ms")]


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of histories: the archive, and what is newer than it."""
    router = new_router("quotes")

    @router.get(
        "/v1/quotes/{instrument}/history",
        **conditional(History, "The instrument's history", 403, 404),
    )
    async def get_quote_history(
        request: Request,
        instrument: InstrumentKey,
        from_ms: From = None,
        to_ms: To = None,
        limit: Annotated[int, limited(MOST_POINTS, "most windows")] = 1_000,
    ) -> Response:
        """An instrument's windows with trades, oldest first; days back if archived."""
        caller, isin = rest.instrument(request, instrument)
        work = _history(rest, caller, isin, from_ms, to_ms, limit)
        return rest.answer.give(request, await rest.deep.awaited(request, work))

    return router


async def _history(
    rest: RestParts,
    caller: Caller,
    isin: str,
    from_ms: int | None,
    to_ms: int | None,
    limit: int,
) -> bytes:
    interval_ms, memory = caller.interval_ms, rest.stores.history
    from_ms = whole_from(from_ms, interval_ms)
    to_ms = whole_until(caller.until_ms(to_ms), interval_ms)
    # Of an interval one point is left: all of it is read.
    most = MOST_POINTS if interval_ms else limit
    with reading_archive(caller):
        # Before what is in memory: a window that is stored meanwhile is in both.
        stored_ms, stored, gaps = await rest.stores.archived.history(
            isin, from_ms, to_ms, most + 1
        )
    upto_ms = max(stored_ms, memory.upto_ms)
    async with rest.deep.turn(caller):
        points: dict[int, ArchivedPoint | Point] = {p.window: p for p in stored}
        recent = islice(memory.newest_first(isin, to_ms), MOST_POINTS)
        async for point in in_slices(recent):
            # Of the archive's newest window a part may have come later.
            is_newer = point.window >= stored_ms or point.window not in points
            if (from_ms or 0) <= point.window and is_newer:
                points[point.window] = point
        caller.charge(len(points))
        every = [points[window] for window in sorted(points, reverse=True)]
        newest_first = paced_points(every, interval_ms, upto_ms)
        paced = [point async for point in in_slices(newest_first)][::-1]
        if interval_ms and len(stored) > most:
            # Of the interval where reading ended a part alone is here.
            paced = paced[1:] if from_ms is None else paced[:-1]
        chosen = paced[-limit:] if from_ms is None else paced[:limit]
        bodies = [point.encode() async for point in in_slices(chosen)]
    is_cut = from_ms is not None and len(paced) > limit
    return b'{"isin":"%b","count":%d,"next":%b,"gaps":%b,"data":[%b]}' % (
        isin.encode(),
        len(chosen),
        b"%d" % paced[limit].window if is_cut else b"null",
        gaps_object(gaps),
        b",".join(bodies),
    )
