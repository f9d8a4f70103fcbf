"""Errors of REST, in the one form of RFC 9457: ``application/problem+json``."""

from collections.abc import Callable, Coroutine, Mapping
from secrets import token_hex
from typing import Any

import orjson
import structlog
from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from redis.exceptions import RedisError
from starlette.exceptions import HTTPException

from gateway.admission.tokens import TokenRefused

MEDIA_TYPE = "application/problem+json"

TYPE = "urn:tickthrottle:problem:"
"""What a problem's ``type`` begins with; its code follows."""

log = structlog.get_logger()


class NotServedHere(RedisError):
    """A relay has no Redis; the message says who has what is asked for."""


Handler = Callable[[Request, Any], Coroutine[Any, Any, Response]]

_CODES = {404: "not_found", 405: "method_not_allowed"}


class Problem(Exception):
    """Why a request cannot be carried out; answered by ``handlers``."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] = {}
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = headers


def describe(status: int, code: str, detail: str) -> dict[str, str | int]:
    """Return the fields of a problem."""
    return {
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": detail,
        "code": code,
        "type": TYPE + code,
    }


def problem(
    status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Build the answer to a request that could not be carried out."""
    return Response(
        orjson.dumps(describe(status, code, detail)),
        status,
        media_type=MEDIA_TYPE,
        headers=None if headers is None else dict(headers),
    )


def json_answer(content: Any, status: int = 200) -> Response:
    """Build an answer of anything that can be told in JSON."""
    return Response(orjson.dumps(content), status, media_type="application/json")


def unavailable(detail: str) -> Problem:
    """Return the problem of Redis, or the archive, that cannot be read for a while."""
    return Problem(503, "unavailable", detail, {"Retry-After": "1"})


def handlers() -> dict[int | type[Exception], Handler]:
    """Return what answers each kind of error, whoever raised it."""
    return {
        Problem: _described,
        RequestValidationError: _bad_request,
        HTTPException: _refused_by_routing,
        TokenRefused: _unauthorized,
        NotServedHere: _not_served,
        RedisError: _unavailable,
        Exception: _fault,
    }


async def _described(request: Request, error: Problem) -> Response:
    return problem(error.status, error.code, str(error), error.headers)


async def _bad_request(request: Request, error: RequestValidationError) -> Response:
    first = error.errors()[0]
    return problem(400, "bad_request", f"{first['loc'][-1]}: {first['msg']}")


async def _refused_by_routing(request: Request, error: HTTPException) -> Response:
    code = _CODES.get(error.status_code, "refused")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    return problem(error.status_code, code, detail, error.headers)


async def _unauthorized(request: Request, error: TokenRefused) -> Response:
    return problem(401, "not_allowed", str(error), {"WWW-Authenticate": "Bearer"})


async def _unavailable(request: Request, error: RedisError) -> Response:
    return await _described(request, unavailable("Redis cannot be read at the moment"))


async def _not_served(request: Request, error: NotServedHere) -> Response:
    return problem(404, "not_served", str(error))


async def _fault(request: Request, error: Exception) -> Response:
    # The server logs the error with its trace right after this.
    incident = token_hex(4)
    log.error("a request failed", path=request.url.path[:200], incident=incident)
    detail = f"not carried out; the incident {incident} is in the log"
    return problem(500, "internal", detail)
