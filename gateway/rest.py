"""REST: latest quotes, recent windows, health. Prices keep their exact text."""

import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import asdict
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from redis.exceptions import RedisError

from gateway.books import imbalances
from gateway.feed import Feed
from gateway.frames import ALL, quotes_object, window_object
from gateway.hub import Hub
from gateway.protocol import Rejection, check_key
from gateway.window_log import WindowLog
from throttle.ledger import Ledger

Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]
Books = Callable[[], Awaitable[list[Ledger]]]


def create_router(
    hub: Hub, feed: Feed, window_log: WindowLog, books: Books
) -> APIRouter:
    """Build the router of everything that is asked for by GET."""
    router = APIRouter()
    _add_quotes(router, hub)
    _add_windows(router, hub, window_log)
    _add_health(router, hub, feed, books)
    return router


def error_handlers() -> dict[int | type[Exception], Handler]:
    """Return handlers that answer every error in the one form clients know."""

    async def bad_request(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        return error_response(400, "bad_request", f"{first['loc'][-1]}: {first['msg']}")

    async def unavailable(request: Request, error: RedisError) -> Response:
        return error_response(
            503, "unavailable", "the window log cannot be read at the moment"
        )

    return {RequestValidationError: bad_request, RedisError: unavailable}


def _add_quotes(router: APIRouter, hub: Hub) -> None:
    board = hub.board

    @router.get("/v1/quotes")
    async def quotes(isins: str | None = None) -> Response:
        """Latest quote of every issue, or of those named, in the order of ISINs."""
        wanted = board.isins()
        if isins is not None:
            wanted = sorted({isin for isin in isins.split(",") if isin})
            for isin in wanted:
                if (rejection := _check_isin(isin)) is not None:
                    return _refuse(rejection)
        rows = [row for isin in wanted if (row := board.get(isin)) is not None]
        return _json(quotes_object(board.position, [row.body for row in rows]))

    @router.get("/v1/quotes/{isin}")
    async def quote(isin: str) -> Response:
        """Latest quote of one issue."""
        if (rejection := _check_isin(isin)) is not None:
            return _refuse(rejection)
        row = board.get(isin)
        if row is None:
            return error_response(404, "unknown_key", f"{isin} has not traded yet")
        return _json(row.body)


def _add_windows(router: APIRouter, hub: Hub, window_log: WindowLog) -> None:
    limit_most = hub.settings.windows_limit

    @router.get("/v1/windows")
    async def windows(
        limit: Annotated[int, Query(ge=1, le=limit_most)] = min(20, limit_most),
        from_ms: Annotated[int | None, Query(alias="from", ge=0)] = None,
        to_ms: Annotated[int | None, Query(alias="to", ge=0)] = None,
        rows: bool = True,
    ) -> Response:
        """Recent windows, newest first; ``from`` and ``to`` bound their ends."""
        found = await window_log.newest(limit, from_ms, to_ms)
        objects = b",".join(window_object(w, with_rows=rows) for w in found)
        return _json(b'{"count":%d,"data":[%b]}' % (len(found), objects))


def _add_health(router: APIRouter, hub: Hub, feed: Feed, books: Books) -> None:
    board = hub.board

    @router.get("/health/live")
    async def live() -> Response:
        """Whether the process answers."""
        return _json(b'{"live":true}')

    @router.get("/health/ready")
    async def ready() -> Response:
        """Whether windows arrive and the books balance; for load balancers."""
        reasons = await _imbalances(books)
        now_s = time.monotonic()
        if not feed.is_live(now_s):
            reasons.insert(0, feed.silence_reason(now_s))
        is_ready = not reasons
        body: dict[str, Any] = {
            "ready": is_ready,
            **({"reason": "; ".join(reasons)} if reasons else {}),
            **asdict(board.position),
            "issues": len(board),
            "clients": len(hub),
            "counters": asdict(hub.counters),
        }
        return _json(orjson.dumps(body), 200 if is_ready else 503)


async def _imbalances(books: Books) -> list[str]:
    try:
        return imbalances(await books())
    except RedisError:
        # Redis that is away stops the windows: the feed says so.
        return []
    except ValueError as error:
        return [str(error)]


def _check_isin(isin: str) -> Rejection | None:
    if isin == ALL:
        return Rejection(isin, "bad_isin", "leave isins out to get every issue")
    return check_key(isin)


def _refuse(rejection: Rejection) -> Response:
    return error_response(400, "bad_isin", f"{rejection.key}: {rejection.message}")


def error_response(status: int, code: str, message: str) -> Response:
    """Build the answer to a request that could not be carried out."""
    body = {"error": {"code": code, "message": message}}
    return _json(orjson.dumps(body), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
