"""REST: bars of an instrument, and what the analytics job has found in the market."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.admission.work import ROWS_A_BAR
from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import Problem, unavailable
from gateway.http.schemas import BarsAnswer, BurstsAnswer, MoversAnswer, MovesAnswer
from gateway.http.time_slice import in_slices
from gateway.protocol.bar_keys import BarKey, bars_read
from gateway.rest.archive_gaps import gaps_object
from gateway.rest.instruments import InstrumentKey
from gateway.rest.selection import resolve
from gateway.upstream.analytics_store import AnalyticsStore
from gateway.upstream.archive_visit import visiting
from gateway.upstream.archived_windows import ArchivedWindows, ArchiveUnreadable
from gateway.upstream.bar_store import PAGE, BarProgress, BarStore

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
    permit: Permit,
    answer: ConditionalAnswers,
    builds: Builds,
) -> APIRouter:
    """Build the router of bars, movers, bursts and moves."""
    router = APIRouter(tags=["analytics"])

    @router.get(
        "/v1/bars/{instrument}",
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
        instrument: InstrumentKey,
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
        """An instrument's newest bars; ``from`` and ``to`` bound their starts.

        As far back as the analytics job keeps them, and then the archive, if there is
        one: a year.
        """
        caller = permit(request)
        isin = resolve(instrument, caller.instruments)
        caller.check_allowed(isin, instrument)
        progress = await store.progress()
        if progress is None:
            raise Problem(404, "no_analytics", NO_BARS)
        key = BarKey(interval, isin)
        bounds = limit, from_ms, to_ms
        work = _bars(*(store, archived, builds, caller, key, progress), *bounds)
        return answer.give(request, await builds.awaited(request, work))

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
        permit(request).check_everything_allowed()
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
        caller = permit(request)
        caller.check_everything_allowed()
        listed = _list(found.bursts, limit, caller, builds)
        return answer.give(request, await builds.awaited(request, listed))

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
        caller = permit(request)
        caller.check_everything_allowed()
        listed = _list(found.moves, limit, caller, builds)
        return answer.give(request, await builds.awaited(request, listed))

    return router


async def _bars(
    store: BarStore,
    archived: ArchivedWindows,
    builds: Builds,
    caller: Caller,
    key: BarKey,
    progress: BarProgress,
    limit: int,
    from_ms: int | None,
    to_ms: int | None,
) -> bytes:
    interval, isin = key
    paid = ROWS_A_BAR * min(bars_read(key, limit), PAGE)
    async with builds.turn(caller):
        # Whoever goes has had a page read.
        caller.charge(paid)
        try:
            with visiting(caller.address, caller.charge):
                bars = await store.last(isin, interval, limit, progress, from_ms, to_ms)
                oldest_ms = bars[0].start_ms if len(bars) == limit else from_ms
                missing = await archived.damaged("bars", oldest_ms, to_ms)
        except ArchiveUnreadable as error:
            raise unavailable(str(error)) from None
        caller.charge(max(0, ROWS_A_BAR * bars_read(key, len(bars)) - paid))
        if caller.paced is not None:
            # Of an open bar the close is a price of now.
            shown_ms = caller.paced.shown_ms
            bars = [bar for bar in bars if bar.closed and bar.end_ms <= shown_ms]
        bodies = [bar.body() async for bar in in_slices(bars)]
    head = b'{"isin":"%b","interval":"%b"' % (isin.encode(), interval.encode())
    tail = gaps_object(missing), b",".join(bodies)
    return b'%b,"count":%d,"gaps":%b,"data":[%b]}' % (head, len(bars), *tail)


async def _list(
    read: Callable[[int], Awaitable[Sequence[bytes]]],
    limit: int,
    caller: Caller,
    builds: Builds,
) -> bytes:
    async with builds.turn(caller):
        bodies = await read(limit)
    caller.charge(len(bodies))
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
