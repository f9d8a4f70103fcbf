"""REST: published windows, of the window log and of the archive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from archive.contract.archive_gap import ArchiveGap
from gateway.admission.bounds import MOST_WINDOWS
from gateway.http.authorization import Caller
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers, Prepared, make_etag
from gateway.http.openapi import conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import Problem
from gateway.http.routers import new_router
from gateway.http.schemas import WindowsAnswer
from gateway.live_stream import Stores
from gateway.rest.rest_parts import (
    RestParts,
    gaps_object,
    limited,
    moment,
    reading_archive,
)
from gateway.stream.board import Board, Position
from gateway.stream.frames import window_object, windows_object
from gateway.upstream.archived_windows import newest_of_both
from throttle.contract.snapshot import WindowSnapshot

MAX_BYTES = 8_388_608
"""An answer ends with the window that makes it longer than this."""

Read = Callable[[Position], AsyncIterator[WindowSnapshot]]

Gaps = Callable[[int | None], Awaitable[Sequence[ArchiveGap]]]
"""Says what cannot be read since the end of the oldest window of an answer."""

Rows = Annotated[bool, Query(description="whether the windows come with their rows")]


EndMs = Annotated[
    int,
    Path(ge=0, le=LATEST_MS, description="the window's end", examples=[1773964804000]),
]


def create_router(rest: RestParts) -> APIRouter:
    """Build the router of windows."""
    router = new_router("windows")
    permit, stores = rest.permit, rest.stores
    # The newest one shall not be forgotten for readers of many.
    latest = PreparedWindows(rest.board, rest.deep, rest.answer)
    prepared = PreparedWindows(rest.board, rest.deep, rest.answer)

    @router.get(
        "/v1/windows", **conditional(WindowsAnswer, "Windows, newest first", 403)
    )
    async def list_windows(
        request: Request,
        limit: Annotated[int, limited(MOST_WINDOWS, "most windows")] = MOST_WINDOWS,
        from_ms: Annotated[int | None, moment("from", "earliest end, ms")] = None,
        to_ms: Annotated[int | None, moment("to", "latest end, ms")] = None,
        rows: Rows = True,
    ) -> Response:
        """Windows, newest first; ``from`` and ``to`` bound their ends."""
        bounds = limit, from_ms, to_ms

        def read(_: Position) -> AsyncIterator[WindowSnapshot]:
            of_log = stores.window_log.newest(*bounds)
            return newest_of_both(of_log, stores.archived, *bounds)

        async def gaps(oldest_ms: int | None) -> Sequence[ArchiveGap]:
            since_ms = oldest_ms or from_ms
            return await stores.archived.damaged("windows", since_ms, to_ms)

        asked = f"{limit} {from_ms} {to_ms}"
        return await prepared.give(
            request, permit(request), asked, read, gaps, with_rows=rows
        )

    @router.get(
        "/v1/windows/latest",
        **conditional(WindowsAnswer, "The newest window, all its parts", 403, 404),
    )
    async def get_latest_window(request: Request, rows: Rows = True) -> Response:
        """The newest window; one part for each job that has published it already."""
        read = partial(_read_latest, stores)
        return await latest.give(
            request, permit(request), "latest", read, with_rows=rows
        )

    @router.get(
        "/v1/windows/{end_ms}",
        **conditional(WindowsAnswer, "The window, all its parts", 403, 404),
    )
    async def get_window(
        request: Request, end_ms: EndMs, rows: Rows = True
    ) -> Response:
        """The window that ends then; one part for each job that has published it."""
        read = partial(_read_one, stores, end_ms)
        return await prepared.give(
            request, permit(request), str(end_ms), read, with_rows=rows
        )

    return router


async def _no_gaps(_: int | None) -> Sequence[ArchiveGap]:
    return ()


class PreparedWindows:
    """Answers with windows: read once per step of the stream, however many ask."""

    def __init__(
        self, board: Board, builds: Builds, answer: ConditionalAnswers
    ) -> None:
        self._board = board
        self._builds = builds
        self._answer = answer
        self._prepared = Prepared()

    async def give(
        self,
        request: Request,
        caller: Caller,
        asked: str,
        read: Read,
        gaps: Gaps = _no_gaps,
        *,
        with_rows: bool,
    ) -> Response:
        """Answer with what is asked for, as of now. ``gaps`` says what it lacks.

        Raises what ``read`` and ``gaps`` raise, and Problem for a caller who may not
        have every instrument at every moment.
        """
        caller.check_everything_allowed()
        position = self._board.position
        place = f"{position.epoch}:{position.offset}"
        rows = b"rows" if with_rows else b""
        etag = make_etag(asked.encode(), place.encode(), rows)

        async def make() -> bytes:
            with reading_archive(caller):
                return await _encode(read(position), caller, gaps, with_rows=with_rows)

        build = partial(
            self._builds.build_once,
            *(request, caller, self._prepared, position, etag, make),
        )
        return await self._answer.give_named(request, etag, build)


async def _encode(
    windows: AsyncIterator[WindowSnapshot],
    caller: Caller,
    gaps: Gaps,
    *,
    with_rows: bool,
) -> bytes:
    objects: list[bytes] = []
    size, oldest_ms = 0, None
    async for window in windows:
        oldest_ms = window.window
        caller.charge(1 + len(window.rows))
        objects.append(window_object(window, with_rows=with_rows))
        size += len(objects[-1])
        if size > MAX_BYTES:
            break
        # Some milliseconds of work each.
        await asyncio.sleep(0)
    return windows_object(objects, gaps_object(await gaps(oldest_ms)))


async def _read_latest(
    stores: Stores, position: Position
) -> AsyncIterator[WindowSnapshot]:
    if position.window is None:
        raise _unknown("no window was published yet")
    windows = await stores.window_log.parts(position.window, until=position.offset)
    if not windows:
        raise _unknown(f"window {position.window} is not kept any more")
    for window in windows:
        yield window


async def _read_one(
    stores: Stores, end_ms: int, _: Position
) -> AsyncIterator[WindowSnapshot]:
    windows = await stores.window_log.parts(end_ms)
    if not windows:
        windows = [part async for part in stores.archived.newest(end_ms, end_ms)]
    if not windows:
        raise _unknown(
            f"no window that ends at {end_ms} is kept, or it cannot be read any more"
        )
    for window in windows:
        yield window


def _unknown(detail: str) -> Problem:
    return Problem(404, "unknown_window", detail)
