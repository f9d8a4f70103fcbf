"""Server-sent events, ``/v1/sse``: the stream for those who cannot have a WebSocket.

The same frames, one way. What a client would say in a message stands in the address;
its position comes back in ``Last-Event-ID``, which browsers send by themselves, or in
the address, for whoever opens the stream anew.
"""

import re
import time
from functools import partial
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from gateway.admission.addresses import address_of
from gateway.admission.tokens import TokenGrant
from gateway.admission.work import WorkRefused
from gateway.http.authorization import create_permit, put_off
from gateway.http.openapi import TOKENS, problem_response
from gateway.http.operator_access import OperatorAccess
from gateway.http.problems import problem
from gateway.http.routers import new_router
from gateway.protocol.messages import (
    MOST_FIELDS,
    MOST_LAST,
    BadMessage,
    BarPosition,
    Since,
    Subscribe,
    split_list,
)
from gateway.stream.client import Client, Ending
from gateway.stream.close_log import GONE
from gateway.stream.hub import Hub
from gateway.transport.asgi_sender import AwaitingSender, Close, Write, until_one_ends
from gateway.transport.event_response import HEADERS, ended_at_shutdown, until_gone
from gateway.transport.uvicorn_http import connection_of
from tickthrottle_client.tick_v1 import CloseCode

CHUNK_BYTES = 16_384
"""A peer that takes this much makes progress; a long frame may take it long."""

EVENTS: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Frames of tick.v1, each an event without a name",
        "content": {
            "text/event-stream": {
                "schema": {"type": "string"},
                "example": 'id: k3x9:1235\ndata: {"type":"update"}\n\n',
            }
        },
    },
    **{status: problem_response(status) for status in (400, 401, 403, 500, 503)},
}

_LAST_EVENT = re.compile(r"(?:([^/]+):(\d{1,18}))?(?:/([^/]+):(\d{1,18}))?", re.ASCII)


def create_router(hub: Hub, access: OperatorAccess | None) -> APIRouter:
    """Build the router of the event stream."""
    router = new_router("stream")
    permit = create_permit(hub, access, takes_tickets=True)

    @router.get(
        "/v1/sse",
        name="open_event_stream",
        # For the document: no JSON.
        response_class=StreamingResponse,
        responses=EVENTS,
        openapi_extra=TOKENS,
    )
    async def sse(
        request: Request,
        keys: Annotated[
            str,
            Query(
                description="keys as on the stream, separated by commas",
                examples=["*"],
            ),
        ],
        min_interval_ms: Annotated[
            int, Query(ge=0, description="at most one update per interval")
        ] = 0,
        last: Annotated[
            int, Query(ge=1, le=MOST_LAST, description="newest bars of each key")
        ] = 1,
        fields: Annotated[
            str,
            Query(
                description="rows by position, of these fields, or of all: `*`",
                examples=["price,trades"],
            ),
        ] = "",
        last_event_id: Annotated[
            str | None,
            Query(description="as the header Last-Event-ID, which has precedence"),
        ] = None,
        ticket: Annotated[
            str | None,
            Query(description="a token with `tick.open_until`, instead of a header"),
        ] = None,
    ) -> Response:
        """A stream of the keys, for as long as it is read."""
        headers = request.headers
        refused = hub.refuse_page(headers)
        if refused is not None:
            return problem(403, "not_allowed", refused)
        # The permit reads the ticket: it is here for the document.
        grant = permit(request).grant
        last_event = headers.get("last-event-id", last_event_id)
        since, bars_since = read_event_id(last_event)
        command = Subscribe(
            None,
            split_list(keys),
            since=since,
            min_interval_ms=min_interval_ms,
            last=last,
            bars_since=bars_since,
            fields=split_list(fields),
        )
        if not command.keys:
            return problem(400, "bad_request", "keys: at least one key")
        if len(command.fields) > MOST_FIELDS:
            return problem(400, "bad_request", f"fields: {MOST_FIELDS} names at most")
        return EventStream(hub, grant, command)

    return router


def read_event_id(event_id: str | None) -> tuple[Since | None, BarPosition | None]:
    """Return the positions that an event's id stands for, None where it has none."""
    match = _LAST_EVENT.fullmatch(event_id or "")
    if match is None:
        return None, None
    since = None if match[1] is None else Since(match[1], int(match[2]))
    return since, None if match[3] is None else BarPosition(match[3], int(match[4]))


class EventStream(Response):
    """A response that lasts as long as its client reads it."""

    def __init__(self, hub: Hub, grant: TokenGrant, command: Subscribe) -> None:
        self.background = None
        self._grant = grant
        self._hub = hub
        self._command = command

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client goes or is sent away."""
        hub, address = self._hub, address_of(scope)
        refusal = hub.enter(address)
        if refusal is not None:
            response = problem(503, "overloaded", refusal)
            await response(scope, receive, send)
            return
        try:
            connection_of(scope).become_stream()
            await self._stream(scope, receive, send, address)
        finally:
            hub.exit(address)

    async def _stream(
        self, scope: Scope, receive: Receive, send: Send, address: str
    ) -> None:
        hub = self._hub
        sender = AwaitingSender(hub.bounds.slow_close_s)
        client = hub.join(sender, time.monotonic(), address, "sse")
        try:
            client.post(hub.welcome(client, time.time_ns() // 1_000))
            client.commands.admit(
                self._grant, time.monotonic(), time.time_ns() // 1_000
            )
            if await hub.wait_turn(client):
                client.post(client.commands.subscribe(self._command, time.monotonic()))
            # A list of its own: what is around this adds to it.
            headers = [*HEADERS]
            start = {"type": "http.response.start", "status": 200, "headers": headers}
            await send(start)
            restart = partial(hub.end, client, CloseCode.RESTART, "planned stop")
            with ended_at_shutdown(scope, restart):
                await until_one_ends(
                    sender.run(client, *_writers(client, sender, send)),
                    until_gone(receive),
                )
                if sender.is_stuck(time.monotonic()):
                    connection_of(scope).abort()
                    await until_gone(receive)
        except WorkRefused as refused:
            hub.counters.work_refused += 1
            late = put_off(refused)
            response = problem(late.status, late.code, str(late), late.headers)
            await response(scope, receive, send)
        except BadMessage as error:
            response = problem(400, error.code, str(error))
            await response(scope, receive, send)
        else:
            if client.ending is None:
                hub.close_log.by_client(GONE)
        finally:
            hub.leave(client)


def _writers(client: Client, sender: AwaitingSender, send: Send) -> tuple[Write, Close]:
    """Return how a frame is sent and how the response ends."""

    async def write(frame: bytes) -> None:
        start = b"%bdata: " % _event_id(client)
        if frame.startswith(b'{"type":"notice"'):
            retry_ms = orjson.loads(frame)["reconnect_after_ms"]
            start = b"retry: %d\n%b" % (retry_ms, start)
        # The frame itself is shared with others: nothing of it is copied but a piece.
        for at in range(0, len(frame), CHUNK_BYTES):
            chunk = start + frame[at : at + CHUNK_BYTES]
            start = b""
            if at + CHUNK_BYTES >= len(frame):
                chunk += b"\n\n"
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
            sender.progress()

    async def close(ending: Ending) -> None:
        await send({"type": "http.response.body", "body": b""})

    return write, close


def _event_id(client: Client) -> bytes:
    """Return the line with what ``Last-Event-ID`` brings back, empty if nothing.

    Epoch, colon, offset; of who watches bars, a slash and the same of them behind it.
    """
    place, bars = b"", client.commands.bars
    here = client.delivery.resume_position()
    if here is not None and here.epoch is not None:
        place = b"%b:%d" % (here.epoch.encode(), here.offset)
    bars_here = None if bars is None else bars.resume_position
    if bars_here is not None and bars_here.epoch is not None:
        place += b"/%b:%d" % (bars_here.epoch.encode(), bars_here.sequence)
    return b"id: %b\n" % place if place else b""
