"""Answers that take long to build: each once, a few at a time, for those who wait."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from fastapi import Request

from gateway.admission.loop_turns import current_share
from gateway.admission.turns import NoTurn, Turns
from gateway.http.authorization import Caller
from gateway.http.conditional import Prepared
from gateway.http.problems import Problem
from gateway.stream.board import Position
from gateway.stream.counters import Counters

BUILT_AT_ONCE = 2
"""Answers that are built at a time. What one of them holds the event loop for, others
wait for.
"""

MOST_WAITING, MOST_WAITING_EACH = 512, 64
"""Requests that wait for their turn, in all and of one address."""


class Builds:
    """Builds bodies in turns, and gives all who ask for the same the same."""

    def __init__(self, counters: Counters) -> None:
        self._turns = Turns(BUILT_AT_ONCE, MOST_WAITING, MOST_WAITING_EACH)
        self._counters = counters
        self._under_way: dict[str, asyncio.Event] = {}

    async def build(
        self,
        request: Request,
        caller: Caller,
        make: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        """Return what ``make`` makes once it is the caller's turn.

        Raises Problem if too many wait, or the client goes.
        """

        async def in_turn() -> bytes:
            async with self.turn(caller):
                return await make()

        return await self.awaited(request, in_turn())

    async def awaited(
        self, request: Request, work: Coroutine[Any, Any, bytes]
    ) -> bytes:
        """Return what ``work`` returns, unless the client goes, or it gets no turn.

        Raises Problem then.
        """
        share = current_share()
        working = asyncio.create_task(share.charged(work) if share else work)
        watching = asyncio.create_task(_gone(request))
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            self._counters.requests_abandoned += 1
            # Nobody reads it any more.
            raise Problem(503, "unavailable", "the client has gone")
        except NoTurn:
            self._counters.requests_crowded_out += 1
            raise Problem(
                503,
                "overloaded",
                "too many requests wait for work like this",
                {"Retry-After": "1"},
            ) from None
        finally:
            watching.cancel()
            working.cancel()
            await asyncio.gather(working, watching, return_exceptions=True)

    def turn(self, caller: Caller) -> AbstractAsyncContextManager[None]:
        """Wait for the caller's turn, which lasts for the block. Raises NoTurn."""
        return self._turns.taken(caller.address)

    async def build_once(
        self,
        request: Request,
        caller: Caller,
        prepared: Prepared,
        position: Position,
        etag: str,
        make: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        """Do the same for a body that ``etag`` names, unless it is ``prepared``."""

        async def make_once() -> bytes:
            other = self._under_way.get(etag)
            if other is not None:
                await other.wait()
            body = prepared.find(position, etag)
            if body is not None:
                return body
            done = self._under_way[etag] = asyncio.Event()
            try:
                body = await make()
                prepared.keep(position, etag, body)
                return body
            finally:
                del self._under_way[etag]
                done.set()

        body = prepared.find(position, etag)
        if body is None:
            body = await self.build(request, caller, make_once)
        return body


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
