"""REST: published windows, as long as the window log holds them."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import Response

from gateway.answers import Answers, Prepared
from gateway.board import Board, Position
from gateway.etag import make_etag
from gateway.frames import windows_object
from gateway.openapi import answers, conditional
from gateway.permits import Permit, check_everything_allowed
from gateway.problems import Problem
from gateway.schemas import Windows
from gateway.window_log import WindowLog

Rows = Annotated[bool, Query(description="whether the windows come with their rows")]


def create_router(
    board: Board,
    window_log: WindowLog,
    limit_most: int,
    permit: Permit,
    answer: Answers,
) -> APIRouter:
    """Build the router of windows; at most ``limit_most`` are told at once."""
    router = APIRouter(tags=["windows"])
    latest = LatestWindow(board, window_log)

    @router.get(
        "/v1/windows",
        responses=answers(
            Windows,
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
            int | None, Query(alias="from", ge=0, description="earliest end, ms")
        ] = None,
        to_ms: Annotated[
            int | None, Query(alias="to", ge=0, description="latest end, ms")
        ] = None,
        rows: Rows = True,
    ) -> Response:
        """Recent windows, newest first; ``from`` and ``to`` bound their ends."""
        check_everything_allowed(permit(request))
        found = await window_log.newest(limit, from_ms, to_ms)
        return answer.give(request, windows_object(found, with_rows=rows))

    @router.get(
        "/v1/windows/latest",
        responses=answers(
            Windows,
            *(400, 401, 403, 404, 503),
            description="The newest window, all its parts",
            is_conditional=True,
        ),
        openapi_extra=conditional(),
    )
    async def get_latest_window(request: Request, rows: Rows = True) -> Response:
        """The newest window; one part for each job that has published it already."""
        check_everything_allowed(permit(request))
        etag, body = await latest.get(with_rows=rows)
        return answer.give_named(request, etag, lambda: body)

    @router.get(
        "/v1/windows/{end_ms}",
        responses=answers(
            Windows,
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
            Path(ge=0, description="the window's end", examples=[1773964804000]),
        ],
        rows: Rows = True,
    ) -> Response:
        """The window that ends then; one part for each job that has published it."""
        check_everything_allowed(permit(request))
        found = await window_log.parts(end_ms)
        if not found:
            raise Problem(
                404, "unknown_window", f"no window that ends at {end_ms} is kept"
            )
        return answer.give(request, windows_object(found, with_rows=rows))

    return router


class LatestWindow:
    """The newest window: read once per step of the stream, however many ask."""

    def __init__(self, board: Board, window_log: WindowLog) -> None:
        self._board = board
        self._window_log = window_log
        self._prepared = Prepared()
        self._reading = asyncio.Lock()

    async def get(self, *, with_rows: bool) -> tuple[str, bytes]:
        """Return the name and the body of the newest window.

        Raises Problem if there is none, RedisError and ValueError if it cannot be read.
        """
        async with self._reading:
            position = self._board.position
            etag = _name(position, with_rows=with_rows)
            body = self._prepared.find(position, etag)
            if body is None:
                body = await self._read(position, with_rows=with_rows)
                self._prepared.keep(position, etag, body)
        return etag, body

    async def _read(self, position: Position, *, with_rows: bool) -> bytes:
        if position.window is None:
            raise Problem(404, "unknown_window", "no window was published yet")
        found = await self._window_log.parts(position.window, until=position.offset)
        if not found:
            raise Problem(
                404, "unknown_window", f"window {position.window} is not kept any more"
            )
        return windows_object(found, with_rows=with_rows)


def _name(position: Position, *, with_rows: bool) -> str:
    place = f"{position.epoch}:{position.offset}"
    return make_etag(b"latest", place.encode(), b"rows" if with_rows else b"")
