"""REST: published windows, of the window log and of the archive."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from archive.contract.archive_gap import ArchiveGap
from gateway.http.authorization import Caller, Permit
from gateway.http.built_once import Builds
from gateway.http.conditional import ConditionalAnswers, Prepared, make_etag
from gateway.http.openapi import answers, conditional
from gateway.http.parameters import LATEST_MS
from gateway.http.problems import Problem, unavailable
from gateway.http.schemas import WindowsAnswer
from gateway.rest.archive_gaps import gaps_object
from gateway.stream.board import Board, Position
from gateway.stream.frames import window_object, windows_object
from gateway.upstream.archive_visit import visiting
from gateway.upstream.archived_windows import (
    ArchivedWindows,
    ArchiveUnreadable,
    newest_of_both,
)
from gateway.upstream.window_log import WindowLog
from throttle.contract.snapshot import WindowSnapshot

MAX_BYTES = 8_388_608
"""An answer ends with the window that makes it longer than this."""

Read = Callable[[Position], AsyncIterator[WindowSnapshot]]

Gaps = Callable[[int | None], Awaitable[Sequence[ArchiveGap]]]
"""Says what cannot be read since the end of the oldest window of an answer."""

Rows = Annotated[bool, Query(description="whether the windows come with their rows")]


def create_router(
    board: Board,
    window_log: WindowLog,
    archived: ArchivedWindows,
    limit_most: int,
    permit: Permit,
    answer: ConditionalAnswers,
    builds: Builds,
) -> APIRouter:
    """Build the router of windows; at most ``limit_most`` are told at once."""
    router = APIRouter(tags=["windows"])
    # The newest one shall not be forgotten for readers of many.
    latest = PreparedWindows(board, builds, answer)
    prepared = PreparedWindows(board, builds, answer)

    @router.get(
        "/v1/windows",
        responses=answers(
            WindowsAnswer,
            *(400, 401, 403, 503),
            description="Windows, newest first",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def list_windows(
        request: Request,
        limit: Annotated[
            int, Query(ge=1, le=limit_most, description="most windows")
        ] = min(20, limit_most),
        from_ms: Annotated[
            int | None,
            Query(alias="from", ge=0, le=LATEST_MS, description="earliest end, ms"),
        ] = None,
        to_ms: Annotated[
            int | None,
            Query(alias="to", ge=0, le=LATEST_MS, description="latest end, ms"),
        ] = None,
        rows: Rows = True,
    ) -> Response:
        """Windows, newest first; ``from`` and ``to`` bound their ends."""
        caller = permit(request)
        return await prepared.give(
            request,
            caller,
            f"{limit} {from_ms} {to_ms}",
            lambda _: _read_some(window_log, archived, limit, from_ms, to_ms),
            lambda oldest_ms: archived.damaged("windows", oldest_ms or from_ms, to_ms),
            with_rows=rows,
        )

    @router.get(
        "/v1/windows/latest",
        responses=answers(
            WindowsAnswer,
            *(400, 401, 403, 404, 503),
            description="The newest window, all its parts",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_latest_window(request: Request, rows: Rows = True) -> Response:
        """The newest window; one part for each job that has published it already."""
        caller = permit(request)
        read = partial(_read_latest, window_log)
        return await latest.give(request, caller, "latest", read, with_rows=rows)

    @router.get(
        "/v1/windows/{end_ms}",
        responses=answers(
            WindowsAnswer,
            *(400, 401, 403, 404, 503),
            description="The window, all its parts",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_window(
        request: Request,
        end_ms: Annotated[
            int,
            Path(
                ge=0,
                le=LATEST_MS,
                description="the window's end",
                examples=[1773964804000],
            ),
        ],
        rows: Rows = True,
    ) -> Response:
        """The window that ends then; one part for each job that has published it."""
        caller = permit(request)
        return await prepared.give(
            request,
            caller,
            str(end_ms),
            lambda _: _read_one(window_log, archived, end_ms),
            with_rows=rows,
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
            with visiting(caller.address, caller.charge):
                return await _encode(read(position), caller, gaps, with_rows=with_rows)

        async def build() -> bytes:
            return await self._builds.build_once(
                request, caller, self._prepared, position, etag, make
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
    try:
        missing = gaps_object(await gaps(oldest_ms))
    except ArchiveUnreadable as error:
        raise unavailable(str(error)) from None
    return windows_object(objects, missing)


async def _read_latest(
    window_log: WindowLog, position: Position
) -> AsyncIterator[WindowSnapshot]:
    if position.window is None:
        raise Problem(404, "unknown_window", "no window was published yet")
    windows = await window_log.parts(position.window, until=position.offset)
    if not windows:
        raise Problem(
            404, "unknown_window", f"window {position.window} is not kept any more"
        )
    for window in windows:
        yield window


async def _read_some(
    window_log: WindowLog,
    archived: ArchivedWindows,
    limit: int,
    from_ms: int | None,
    to_ms: int | None,
) -> AsyncIterator[WindowSnapshot]:
    bounds = limit, from_ms, to_ms
    try:
        of_log = window_log.newest(*bounds)
        async for window in newest_of_both(of_log, archived, *bounds):
            yield window
    except ArchiveUnreadable as error:
        raise unavailable(str(error)) from None


async def _read_one(
    window_log: WindowLog, archived: ArchivedWindows, end_ms: int
) -> AsyncIterator[WindowSnapshot]:
    windows = await window_log.parts(end_ms)
    if not windows:
        try:
            windows = [part async for part in archived.newest(end_ms, end_ms)]
        except ArchiveUnreadable as error:
            raise unavailable(str(error)) from None
    if not windows:
        raise Problem(
            404,
            "unknown_window",
            f"no window that ends at {end_ms} is kept, or it cannot be read any more",
        )
    for window in windows:
        yield window
