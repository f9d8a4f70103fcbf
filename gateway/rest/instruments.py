"""REST: the instrument table, and what each instrument did."""

import asyncio
from functools import partial
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from gateway.http.authorization import Caller
from gateway.http.conditional import make_etag
from gateway.http.openapi import conditional
from gateway.http.problems import Problem
from gateway.http.routers import new_router
from gateway.http.schemas import Chart, ListedInstrument, ListedInstruments
from gateway.http.time_slice import in_slices
from gateway.rest.paced_points import paced_points
from gateway.rest.rest_parts import InstrumentKey, RestParts, data_object, limited
from gateway.rest.selection import Wish, select
from gateway.upstream.instrument_history import points_object

POINTS_LIMIT = 1_000
"""Most windows one request may ask for; the window log usually holds fewer."""

Market = Annotated[
    str | None, Query(min_length=1, description="a market of the instrument table")
]
Sector = Annotated[
    str | None, Query(min_length=1, description="a sector of the instrument table")
]


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of instruments."""
    router = new_router("instruments")
    answer, builds, history = rest.answer, rest.quick, rest.stores.history

    @router.get(
        "/v1/instruments",
        **conditional(
            ListedInstruments, "The instruments that fit all that is asked for"
        ),
    )
    async def list_instruments(
        request: Request,
        q: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=100,
                description="part of a name, or the beginning of a code or ISIN",
                examples=["samsung"],
            ),
        ] = None,
        market: Market = None,
        sector: Sector = None,
    ) -> Response:
        """What is known of the instruments, in order of ISINs."""
        caller = rest.permit(request)
        wish = Wish(market=market, sector=sector)
        selected = select(wish, caller.instruments)
        etag = make_etag(caller.encode_rights(), wish.encode(), repr(q).encode())

        async def make() -> bytes:
            caller.charge(len(caller.instruments))
            return await asyncio.to_thread(_encode, selected, q, caller)

        build = partial(builds.build, request, caller, make)
        return await answer.give_named(request, etag, build)

    @router.get(
        "/v1/instruments/{instrument}",
        **conditional(
            ListedInstrument, "What is known of the instrument", 403, 404, 429
        ),
    )
    async def get_instrument(request: Request, instrument: InstrumentKey) -> Response:
        """What is known of one instrument."""
        caller, isin = rest.instrument(request, instrument)
        entry = caller.instruments.get(isin)
        if entry is None:
            raise Problem(404, "unknown_key", f"{isin}: is not in the instrument table")
        return answer.give(request, entry.encoded)

    @router.get(
        "/v1/instruments/{instrument}/windows",
        **conditional(Chart, "The instrument's history", 403, 404),
    )
    async def get_instrument_windows(
        request: Request,
        instrument: InstrumentKey,
        limit: Annotated[int, limited(POINTS_LIMIT, "most windows")] = 300,
    ) -> Response:
        """The newest windows in which an instrument traded, oldest first."""
        caller, isin = rest.instrument(request, instrument)

        async def make() -> bytes:
            upto_ms = history.upto_ms
            newest_first = history.newest_first(isin, caller.until_ms())
            paced = paced_points(newest_first, caller.interval_ms, upto_ms)
            points = [p async for p in in_slices(islice(paced, limit))]
            caller.charge(len(points))
            return points_object(isin, reversed(points))

        return answer.give(request, await builds.build(request, caller, make))

    return router


def _encode(selected: frozenset[str] | None, q: str | None, caller: Caller) -> bytes:
    instruments = caller.instruments
    bodies = [
        instrument.encoded
        for instrument in (instruments if q is None else instruments.search(q))
        if (selected is None or instrument.isin in selected)
        and caller.allows(instrument.isin)
    ]
    return data_object(bodies)
