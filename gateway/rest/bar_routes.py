"""REST: bars of an instrument, and what the analytics job has found in the market."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Literal, TypeAlias

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.admission.work import ROWS_A_BAR, ROWS_A_DAY
from gateway.http.authorization import Caller
from gateway.http.conditional import Prepared, make_etag
from gateway.http.openapi import conditional
from gateway.http.problems import Problem
from gateway.http.routers import new_router
from gateway.http.schemas import (
    BarsAnswer,
    BurstsAnswer,
    DaysAnswer,
    MoversAnswer,
    MovesAnswer,
)
from gateway.http.time_slice import in_slices
from gateway.protocol.prefixed_keys import BarKey, bars_read
from gateway.rest.day_statistics import encode_prices
from gateway.rest.rest_parts import (
    InstrumentKey,
    RestParts,
    data_object,
    gaps_object,
    limited,
    moment,
    reading_archive,
)
from gateway.upstream.bar_store import PAGE, BarProgress

MOST_BARS = 1_000
"""So many bars are in an answer at most: 300 KiB."""

Interval: TypeAlias = Literal["1m", "5m", "15m", "1h", "1d"]

Limit = Annotated[int, limited(500, "most of them")]


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of bars, days, movers, bursts and moves."""
    router = new_router("analytics")
    permit, answer, analytics = rest.permit, rest.answer, rest.stores.analytics
    prepared_days = Prepared()

    @router.get(
        "/v1/bars/{instrument}",
        **conditional(BarsAnswer, "The bars, oldest first", 403, 404),
    )
    async def list_bars(
        request: Request,
        instrument: InstrumentKey,
        interval: Annotated[Interval, Query(description="how long a bar is")] = "1m",
        from_ms: Annotated[int | None, moment("from", "earliest start, ms")] = None,
        to_ms: Annotated[int | None, moment("to", "latest start, ms")] = None,
        limit: Annotated[int, limited(MOST_BARS, "most bars: the newest ones")] = 300,
    ) -> Response:
        """An instrument's newest bars; ``from`` and ``to`` bound their starts.

        As far back as the analytics job keeps them, and then the archive, if there is
        one: a year.
        """
        caller, isin = rest.instrument(request, instrument)
        progress = await rest.stores.bars.progress()
        if progress is None:
            raise _no_analytics("bars")
        work = _bars(
            *(rest, caller, BarKey(interval, isin), progress), limit, from_ms, to_ms
        )
        return answer.give(request, await rest.deep.awaited(request, work))

    @router.get("/v1/movers", **conditional(MoversAnswer, "The newest lists", 403, 404))
    async def get_movers(request: Request) -> Response:
        """What rose, fell and traded most in the newest span."""
        permit(request).check_everything_allowed()
        body = await analytics.movers()
        if body is None:
            raise _no_analytics("movers")
        return answer.give(request, body)

    @router.get(
        "/v1/bursts",
        **conditional(BurstsAnswer, "The newest bursts, newest first", 403),
    )
    async def list_bursts(request: Request, limit: Limit = 50) -> Response:
        """Where trading has come alive, and for how long; bursts that have ended."""
        return await give_newest(request, partial(analytics.bursts, limit))

    @router.get(
        "/v1/moves", **conditional(MovesAnswer, "The newest moves, newest first", 403)
    )
    async def list_moves(request: Request, limit: Limit = 50) -> Response:
        """Which prices went far within seconds."""
        return await give_newest(request, partial(analytics.moves, limit))

    async def give_newest(
        request: Request, read: Callable[[], Awaitable[Sequence[bytes]]]
    ) -> Response:
        caller = permit(request)
        caller.check_everything_allowed()

        async def listed() -> bytes:
            bodies = await read()
            caller.charge(len(bodies))
            return data_object(bodies)

        return answer.give(request, await rest.deep.build(request, caller, listed))

    @router.get("/v1/days", **conditional(DaysAnswer, "The newest days", 403, 404))
    async def list_days(request: Request) -> Response:
        """The prices of the newest day of every instrument that has a quote."""
        caller = permit(request)
        caller.check_every_moment_allowed()
        version = await analytics.days_version()
        if version is None:
            raise _no_analytics("days")
        position = rest.board.position
        name = f"{position.epoch}:{position.offset} {version}"
        etag = make_etag(name.encode(), caller.encode_rights())

        async def make() -> bytes:
            isins = filter(caller.allows, rest.board.isins())
            allowed = [isin async for isin in in_slices(isins)]
            caller.charge(ROWS_A_DAY * len(allowed))
            days = await analytics.days(allowed)
            bodies = map(encode_prices, days.values())
            return data_object([body async for body in in_slices(bodies)])

        build = partial(
            rest.quick.build_once,
            *(request, caller, prepared_days, position, etag, make),
        )
        return await answer.give_named(request, etag, build)

    return router


def _no_analytics(products: str) -> Problem:
    detail = f"no {products} are published here: the analytics job has not run"
    return Problem(404, "no_analytics", detail)


async def _bars(
    rest: RestParts,
    caller: Caller,
    key: BarKey,
    progress: BarProgress,
    limit: int,
    from_ms: int | None,
    to_ms: int | None,
) -> bytes:
    interval, isin = key
    stores = rest.stores
    paid = ROWS_A_BAR * min(bars_read(key, limit), PAGE)
    async with rest.deep.turn(caller):
        # Whoever goes has had a page read.
        caller.charge(paid)
        with reading_archive(caller):
            bounds = limit, progress, from_ms, to_ms
            bars = await stores.bars.last(isin, interval, *bounds)
            oldest_ms = bars[0].start_ms if len(bars) == limit else from_ms
            missing = await stores.archived.damaged("bars", oldest_ms, to_ms)
        caller.charge(max(0, ROWS_A_BAR * bars_read(key, len(bars)) - paid))
        if caller.paced is not None:
            # Of an open bar the close is a price of now.
            shown_ms = caller.paced.shown_ms
            bars = [bar for bar in bars if bar.closed and bar.end_ms <= shown_ms]
        bodies = [bar.body() async for bar in in_slices(bars)]
    head = b'{"isin":"%b","interval":"%b"' % (isin.encode(), interval.encode())
    tail = gaps_object(missing), b",".join(bodies)
    return b'%b,"count":%d,"gaps":%b,"data":[%b]}' % (head, len(bars), *tail)
