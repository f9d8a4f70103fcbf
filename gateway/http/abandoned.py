"""Work for a client that has gone is ended, and its place given to others."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from fastapi import Request

from gateway.admission.loop_turns import current_share
from gateway.http.problems import Problem
from gateway.stream.counters import Counters

T = TypeVar("T")


async def while_awaited(
    request: Request, counters: Counters, work: Coroutine[Any, Any, T]
) -> T:
    """Return what ``work`` returns; end it when the request's client goes.

    Then raises Problem, which nobody reads any more.
    """
    share = current_share()
    working = asyncio.create_task(share.charged(work) if share else work)
    watching = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        counters.requests_abandoned += 1
        raise Problem(503, "unavailable", "the client has gone")
    finally:
        watching.cancel()
        working.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
