"""REST: how the price of every instrument has gone lately, in one answer."""

from functools import partial

from fastapi import APIRouter, Request
from fastapi.responses import Response

from gateway.admission.work import ROWS_A_TREND
from gateway.http.authorization import Caller
from gateway.http.conditional import Prepared, make_etag
from gateway.http.openapi import conditional
from gateway.http.routers import new_router
from gateway.http.schemas import TrendsAnswer
from gateway.http.time_slice import in_slices
from gateway.rest.minute_closes import (
    STEP_MS,
    newest_minutes,
    trend_objects,
    trends_object,
)
from gateway.rest.rest_parts import RestParts
from gateway.stream.board import Position

MAX_BYTES = 8_388_608
"""An answer ends before it is longer; the instruments that are left out are counted."""


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of trends."""
    router = new_router("quotes")
    history, prepared = rest.stores.history, Prepared()

    @router.get("/v1/trends", **conditional(TrendsAnswer, "The newest closes", 403))
    async def list_trends(request: Request) -> Response:
        """Every instrument's closes of the newest half hour, one a minute."""
        caller = rest.permit(request)
        if caller.interval_ms and STEP_MS % caller.interval_ms:
            # Such a close may be a second price of an interval.
            caller.check_every_moment_allowed()
        upto_ms = caller.until_ms(history.upto_ms) or 0
        first, last = newest_minutes(history.since_ms, upto_ms)
        epoch = rest.board.position.epoch
        name = b"%d %d %b" % (first, last, (epoch or "").encode())
        etag = make_etag(name, caller.encode_rights())
        # The answer stays as it is until a minute is over.
        position = Position(epoch, last)
        work = partial(_trends, rest, caller, first, last)
        build = partial(
            rest.quick.build_once, request, caller, prepared, position, etag, work
        )
        return await rest.answer.give_named(request, etag, build)

    return router


async def _trends(rest: RestParts, caller: Caller, first: int, last: int) -> bytes:
    if first > last:
        return trends_object(None, (), 0)
    minutes: list[dict[str, bytes]] = [{} for _ in range(first, last + 1, STEP_MS)]
    filling = rest.stores.history.fill_closes(minutes, first - STEP_MS, STEP_MS)
    async for _ in in_slices(filling):
        pass
    isins = filter(caller.allows, caller.board.isins())
    bodies: list[bytes] = []
    size = left_out = 0
    async for body in in_slices(trend_objects(isins, minutes)):
        size += len(body)
        if size <= MAX_BYTES:
            bodies.append(body)
        else:
            left_out += 1
    caller.charge(ROWS_A_TREND * (len(bodies) + left_out))
    return trends_object(last, bodies, left_out)
