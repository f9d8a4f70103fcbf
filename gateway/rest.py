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
from gateway.frames import quotes_object, window_object
from gateway.hub import Hub
from gateway.protocol import Rejection, check_key, split_list
from gateway.tokens import EVERYTHING, Grant, TokenRefused
from gateway.views import ALL
from gateway.window_log import WindowLog
from throttle.ledger import Ledger

Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]
Permit = Callable[[Request], Grant]
Books = Callable[[], Awaitable[list[Ledger]]]


def create_router(
    hub: Hub, feed: Feed, window_log: WindowLog, books: Books
) -> APIRouter:
    """Build the router of everything that is asked for by GET."""
    router = APIRouter()
    permit = create_permit(hub)
    _add_quotes(router, hub, permit)
    _add_windows(router, hub, window_log, permit)
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

    async def unauthorized(request: Request, error: TokenRefused) -> Response:
        response = error_response(401, "not_allowed", str(error))
        response.headers["WWW-Authenticate"] = "Bearer"
        return response

    return {
        RequestValidationError: bad_request,
        RedisError: unavailable,
        TokenRefused: unauthorized,
    }


def create_permit(hub: Hub) -> Permit:
    """Return the function that reads a request's token (RFC 6750, 2.1).

    It raises TokenRefused.
    """

    def permit(request: Request) -> Grant:
        if hub.tokens is None:
            return EVERYTHING
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        try:
            if scheme.lower() != "bearer":
                raise TokenRefused("the request has no header Authorization: Bearer")
            return hub.tokens.read(token.strip())
        except TokenRefused:
            hub.counters.clients_token_refused += 1
            raise

    return permit


def _add_quotes(router: APIRouter, hub: Hub, permit: Permit) -> None:
    board = hub.board

    @router.get("/v1/quotes")
    async def quotes(request: Request, isins: str | None = None) -> Response:
        """Latest quote of every issue, or of those named, in the order of ISINs."""
        grant = permit(request)
        wanted = [isin for isin in board.isins() if grant.allows(isin)]
        if isins is not None:
            wanted = sorted(split_list(isins))
            for isin in wanted:
                if (refusal := _refuse(isin, grant)) is not None:
                    return refusal
        rows = [row for isin in wanted if (row := board.get(isin)) is not None]
        return _json(quotes_object(board.position, [row.body for row in rows]))

    @router.get("/v1/quotes/{isin}")
    async def quote(request: Request, isin: str) -> Response:
        """Latest quote of one issue."""
        if (refusal := _refuse(isin, permit(request))) is not None:
            return refusal
        row = board.get(isin)
        if row is None:
            return error_response(404, "unknown_key", f"{isin} has not traded yet")
        return _json(row.body)


def _add_windows(
    router: APIRouter, hub: Hub, window_log: WindowLog, permit: Permit
) -> None:
    limit_most = hub.settings.windows_limit

    @router.get("/v1/windows")
    async def windows(
        request: Request,
        limit: Annotated[int, Query(ge=1, le=limit_most)] = min(20, limit_most),
        from_ms: Annotated[int | None, Query(alias="from", ge=0)] = None,
        to_ms: Annotated[int | None, Query(alias="to", ge=0)] = None,
        rows: bool = True,
    ) -> Response:
        """Recent windows, newest first; ``from`` and ``to`` bound their ends."""
        if not permit(request).allows_everything:
            return error_response(403, "not_allowed", "a window holds every issue")
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


def _refuse(isin: str, grant: Grant) -> Response | None:
    """Return the answer to a request for an issue, None if it may be had."""
    rejection = check_key(isin)
    if isin == ALL:
        rejection = Rejection(isin, "bad_isin", "leave isins out to get every issue")
    if rejection is not None:
        return error_response(400, "bad_isin", f"{isin}: {rejection.message}")
    if not grant.allows(isin):
        return error_response(403, "not_allowed", f"{isin}: not in your token")
    return None


def error_response(status: int, code: str, message: str) -> Response:
    """Build the answer to a request that could not be carried out."""
    body = {"error": {"code": code, "message": message}}
    return _json(orjson.dumps(body), status)


def _json(body: bytes, status: int = 200) -> Response:
    return Response(body, status, media_type="application/json")
