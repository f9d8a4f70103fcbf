"""Answers that wait for their readers: bounded in bytes, and cut if nobody reads."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.http.problems import problem
from gateway.stream.counters import Counters
from gateway.transport.uvicorn_http import connection_of

CHUNK_BYTES = 65_536
"""A body is handed on in pieces of this size, the next when there is room."""

EVENTS = b"text/event-stream"


class BytesInFlight:
    """Counts the bytes of bodies that are being sent, each body once."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._readers: dict[int, int] = {}

    def enter(self, body: bytes) -> bool:
        """Count a body in, which has to live until it leaves; False: no room."""
        readers = self._readers.get(id(body), 0)
        if not readers:
            if self._bytes + len(body) > self._most_bytes:
                return False
            self._bytes += len(body)
        self._readers[id(body)] = readers + 1
        return True

    def leave(self, body: bytes) -> None:
        """Count a body out that was counted in."""
        readers = self._readers[id(body)] - 1
        if readers:
            self._readers[id(body)] = readers
        else:
            del self._readers[id(body)]
            self._bytes -= len(body)


class BoundedAnswers:
    """Sends long bodies in pieces, and cuts a peer that takes none of them.

    A body for which there is no room is answered with 503. Event streams pass: they
    have bounds of their own.
    """

    def __init__(
        self,
        app: ASGIApp,
        in_flight: BytesInFlight,
        counters: Counters,
        patience_s: float,
    ) -> None:
        self._app = app
        self._in_flight = in_flight
        self._counters = counters
        self._patience_s = patience_s

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and its answer as it is taken."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        is_endless = False

        async def send_bounded(message: Message) -> None:
            nonlocal start, is_endless
            if message["type"] == "http.response.start":
                is_endless = any(
                    name == b"content-type" and value.startswith(EVENTS)
                    for name, value in message["headers"]
                )
                if not is_endless:
                    # The body may have no room: then another answer is given.
                    start = message
                    return
            if is_endless:
                await send(message)
                return
            begun, start = start, None
            body = message.get("body", b"")
            is_long = len(body) > CHUNK_BYTES
            if is_long and not self._in_flight.enter(body):
                self._counters.answers_refused += 1
                reason = "too many answers are on their way to slow readers"
                refusal = problem(503, "overloaded", reason, {"Retry-After": "1"})
                await refusal(scope, receive, send)
                return
            try:
                if begun is not None:
                    await self._push(scope, send, begun)
                for at in range(0, len(body) or 1, CHUNK_BYTES):
                    end = at + CHUNK_BYTES
                    has_more = end < len(body) or message.get("more_body", False)
                    piece = {"body": body[at:end], "more_body": has_more}
                    await self._push(scope, send, {**message, **piece})
            finally:
                if is_long:
                    self._in_flight.leave(body)

        await self._app(scope, receive, send_bounded)

    async def _push(self, scope: Scope, send: Send, message: Message) -> None:
        try:
            async with asyncio.timeout(self._patience_s):
                await send(message)
        except TimeoutError:
            # What else the application sends, uvicorn throws away.
            self._counters.answers_cut += 1
            connection_of(scope).abort()
