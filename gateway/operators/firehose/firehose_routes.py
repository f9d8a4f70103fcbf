"""The firehose as server-sent events, ``/v1/firehose``."""

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.admission.tokens import EVERYTHING, TokenGrant
from gateway.backend import Backend
from gateway.http.authorization import create_permit
from gateway.http.openapi import OPERATORS, TOKENS, problem_response
from gateway.http.operator_access import OperatorAccess
from gateway.http.problems import Problem, problem
from gateway.http.routers import new_router
from gateway.named_files import read_topic
from gateway.operators.firehose.firehose_reader import Firehose, Viewer
from gateway.operators.firehose.firehose_sample import Sample
from gateway.operators.firehose.log_end import KafkaLogEnd, LogEnd, RedisLogEnd
from gateway.settings import MOST_FIREHOSE_RATE
from gateway.transport.asgi_sender import until_one_ends
from gateway.transport.event_response import HEADERS, ended_at_shutdown, until_gone
from gateway.transport.uvicorn_http import connection_of

USUAL_RATE = 200
"""Trades a second that are shown to whoever names no rate."""

Rate = Annotated[
    int, Query(ge=1, le=MOST_FIREHOSE_RATE, description="most trades shown in a second")
]

_NO_FIREHOSE = "not_served", "There is none", "firehose_rate is 0: there is none"

_EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The trades that are shown, and how many others there were",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": (
                    'data: {"type":"trades","appended":83,"shown":1,"left_out":82,'
                    '"unread":0,"bytes":11703,"data":[{"isin":"KR7005930003",'
                    '"price":"71500","size":"12","time":1773964804470123,'
                    '"bytes":141}]}\n\n'
                ),
            }
        },
    },
    404: problem_response(404, _NO_FIREHOSE),
    **{status: problem_response(status) for status in (400, 401, 403, 500, 503)},
}


def create_firehose(backend: Backend) -> Firehose:
    """Build the firehose of a gateway, from wherever its log is."""
    topic = read_topic(backend.settings)
    stream = backend.stream
    end: LogEnd = RedisLogEnd(stream.redis, stream.keys.namespace)
    if topic is not None:
        end = KafkaLogEnd(topic)
    firehose = Firehose(end, backend.stream.counters, backend.bounds.firehose_viewers)
    backend.health.exporter.firehose_viewers = lambda: firehose.viewers
    return firehose


def create_router(
    backend: Backend, firehose: Firehose, access: OperatorAccess | None
) -> APIRouter:
    """Build the router of the firehose.

    ``access`` is given on the operators' listener, None on the public one.
    """
    settings = backend.settings
    if access is None:
        grant_of, router = _visitor(backend), new_router("firehose")
    else:
        grant_of = _operator
        router = new_router("firehose", access.check_request)

    @router.get(
        "/v1/firehose",
        name="open_firehose",
        # For the document: no JSON.
        response_class=StreamingResponse,
        responses=_EVENTS,
        openapi_extra=TOKENS if access is None else OPERATORS,
    )
    async def open_firehose(request: Request, rate: Rate = USUAL_RATE) -> Response:
        """Trades of the log as they come, a bounded sample of them."""
        grant = grant_of(request)
        if settings.served_market is not None:
            detail = (
                "this gateway serves one market, and the log holds every instrument"
            )
            raise Problem(404, "not_served", detail)
        if settings.firehose_rate == 0:
            raise Problem(404, *_NO_FIREHOSE[::2])
        granted = min(rate, settings.firehose_rate)
        patience_s = backend.bounds.slow_close_s
        return FirehoseStream(firehose, granted, patience_s, grant.expires_us)

    return router


def _operator(request: Request) -> TokenGrant:
    return EVERYTHING


def _visitor(backend: Backend) -> Callable[[Request], TokenGrant]:
    permit = create_permit(backend.stream.hub, None)

    def grant_of(request: Request) -> TokenGrant:
        refused = backend.stream.hub.refuse_page(request.headers)
        if refused is not None:
            raise Problem(403, "not_allowed", refused)
        caller = permit(request)
        caller.check_everything_allowed()
        return caller.grant

    return grant_of


class FirehoseStream(Response):
    """A response that lasts as long as its viewer reads it, and its token is good."""

    def __init__(
        self,
        firehose: Firehose,
        rate: int,
        patience_s: float,
        expires_us: int | None = None,
    ) -> None:
        self.background = None
        self._firehose = firehose
        self._rate = rate
        self._patience_s = patience_s
        self._expires_us = expires_us

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the viewer goes, takes nothing, or the gateway stops."""
        viewer = self._firehose.join(self._rate)
        if viewer is None:
            refusal = "as many look at the firehose as may"
            await problem(503, "overloaded", refusal)(scope, receive, send)
            return
        start = {"type": "http.response.start", "status": 200, "headers": [*HEADERS]}
        try:
            connection_of(scope).become_stream()
            with ended_at_shutdown(scope, viewer.end), self._ended_in_time(viewer):
                await send(start)
                await until_one_ends(self._write(viewer, send), until_gone(receive))
        except TimeoutError:
            connection_of(scope).abort()
        finally:
            self._firehose.leave(viewer)

    @contextmanager
    def _ended_in_time(self, viewer: Viewer) -> Iterator[None]:
        """Have the viewer sent away within the block when its token expires."""
        if self._expires_us is None:
            yield
            return
        left_s = self._expires_us / 1e6 - time.time()
        end = partial(self._firehose.expire, viewer)
        timer = asyncio.get_running_loop().call_later(left_s, end)
        try:
            yield
        finally:
            timer.cancel()

    async def _write(self, viewer: Viewer, send: Send) -> None:
        await self._push(send, orjson.dumps({"type": "firehose", "rate": self._rate}))
        while (news := await viewer.next()) is not None:
            if isinstance(news, Sample):
                self._firehose.count_sent(news)
                message = news.encode()
            else:
                message = orjson.dumps({"type": "problem", "detail": news})
            await self._push(send, message)
        await send({"type": "http.response.body", "body": b""})

    async def _push(self, send: Send, message: bytes) -> None:
        body = b"data: " + message + b"\n\n"
        # Whoever takes nothing of it is cut.
        async with asyncio.timeout(self._patience_s):
            await send({"type": "http.response.body", "body": body, "more_body": True})
