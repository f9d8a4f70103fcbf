"""REST: the instrument table, and what each instrument did."""

import asyncio
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.problems import Problem
from gateway.http.schemas import Chart, ListedInstrument, ListedInstruments
from gateway.http.time_slice import in_slices
from gateway.rest.paced_points import paced_points
from gateway.rest.selection import Wish, resolve, select
from gateway.upstream.instrument_history import InstrumentHistory, points_object

POINTS_LIMIT = 1_000
"""Most windows one request may ask for; the window log usually holds fewer."""

Market = Annotated[
    str | None, Query(min_length=1, description="a market of the instrument table")
]
Sector = Annotated[
    str | None, Query(min_length=1, description="a sector of the instrument table")
]
InstrumentKey = Annotated[
    str,
    Path(
        description="an ISIN, or a code of the instrument table",
        examples=["KR7005930003"],
    ),
]

MAX_SEARCH_CHARS = 100


def create_router(
    history: InstrumentHistory,
    permit: Permit,
    answer: ConditionalAnswers,
    builds: Builds,
) -> APIRouter:
    """Build the router of instruments."""
    router = APIRouter(tags=["instruments"])

    @router.get(
        "/v1/instruments",
        responses=answers(
            ListedInstruments,
            *(400, 401, 503),
            description="The instruments that fit all that is asked for",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_instruments(
        request: Request,
        q: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=MAX_SEARCH_CHARS,
                description="part of a name, or the beginning of a code or ISIN",
                examples=["samsung"],
            ),
        ] = None,
        market: Market = None,
        sector: Sector = None,
    ) -> Response:
        """What is known of the instruments, in order of ISINs."""
        caller = permit(request)
        wish = Wish(market=market, sector=sector)
        wanted = select(wish, caller.instruments)
        etag = make_etag(caller.encode_rights(), wish.encode(), repr(q).encode())

        async def make() -> bytes:
            caller.charge(len(caller.instruments))
            return await asyncio.to_thread(_encode, wanted, q, caller)

        async def build() -> bytes:
            return await builds.build(request, caller, make)

        return await answer.give_named(request, etag, build)

    @router.get(
        "/v1/instruments/{instrument}",
        responses=answers(
            ListedInstrument,
            *(400, 401, 403, 404, 429),
            description="What is known of the instrument",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_instrument(request: Request, instrument: InstrumentKey) -> Response:
        """What is known of one instrument."""
        caller = permit(request)
        isin = resolve(instrument, caller.instruments)
        caller.check_allowed(isin, instrument)
        entry = caller.instruments.get(isin)
        if entry is None:
            raise Problem(404, "unknown_key", f"{isin}: is not in the instrument table")
        return answer.give(request, entry.encoded)

    @router.get(
        "/v1/instruments/{instrument}/windows",
        responses=answers(
            Chart,
            *(400, 401, 403, 404, 503),
            description="The instrument's history",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_instrument_windows(
        request: Request,
        instrument: InstrumentKey,
        limit: Annotated[
            int, Query(ge=1, le=POINTS_LIMIT, description="most windows")
        ] = 300,
    ) -> Response:
        """The newest windows in which an instrument traded, oldest first."""
        caller = permit(request)
        isin = resolve(instrument, caller.instruments)
        caller.check_allowed(isin, instrument)

        async def make() -> bytes:
            upto_ms = history.upto_ms
            newest_first = history.newest_first(isin, caller.until_ms())
            paced = paced_points(newest_first, caller.interval_ms, upto_ms)
            points = [p async for p in in_slices(islice(paced, limit))]
            caller.charge(len(points))
            return points_object(isin, reversed(points))

        return answer.give(request, await builds.build(request, caller, make))

    return router


def _encode(wanted: frozenset[str] | None, q: str | None, caller: Caller) -> bytes:
    instruments = caller.instruments
    bodies = [
        instrument.encoded
        for instrument in (instruments if q is None else instruments.search(q))
        if (wanted is None or instrument.isin in wanted)
        and caller.allows(instrument.isin)
    ]
    return b'{"count":%d,"data":[%b]}' % (len(bodies), b",".join(bodies))
