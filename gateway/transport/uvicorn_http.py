"""uvicorn's HTTP protocol with bounds on all that a stranger can make grow, and an end.

uvicorn waits for a request as long as the peer likes, and keeps whatever is sent of
it. And it has no way to end a response that goes on for hours, at a planned stop or
when its peer stops reading: the application finds this object in the request's scope.
"""

import time
from asyncio import CancelledError, TimerHandle, Transport
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from gateway.admission.addresses import UNKNOWN, one_address
from gateway.admission.bounds import BOUNDS, MAX_REQUEST_BYTES
from gateway.admission.connections import PlainConnections
from gateway.admission.limits import Budgets
from gateway.stream.counters import Counters
from gateway.transport.uvicorn_websocket import StreamProtocol, may_upgrade
from gateway.trusted_proxies import TrustedProxies

EXTENSION = "tickthrottle.http"

MAX_HEADERS = 128
"""Most headers of a request; trailers count, too."""

MAX_PIPELINED = 16
"""Most requests that may wait for the answer to the one before."""

LINGER_S = 1.0
"""How long a peer that was refused may take to read why."""

LINGER_BYTES = 262_144
"""How much of what it goes on to send is taken from it meanwhile, and thrown away."""

LATE_S = 1.0
"""How late a connection is read whose address has been refused too often."""

STREAM_UNSENT_BYTES = 16_384
"""What may wait of an event stream for its peer to read, and one piece more."""

OPERATORS_SPARE = 64
"""Operators get in when there are this many connections too many for others."""


@dataclass(frozen=True, slots=True)
class Guard:
    """The bounds of a server's connections, and what is counted at them."""

    counters: Counters
    plain: PlainConnections[Transport]
    refusals: Budgets
    proxies: TrustedProxies
    operators_port: int | None = None
    max_body_bytes: int = 0
    """Where bodies may be larger than heads: the most of both. 0: they may not."""
    request_s: float = BOUNDS.request_s
    """How long a request may take to arrive, seconds."""

    def note_refusal(self, address: str) -> None:
        """Count something refused to an address, or a connection without a request."""
        self.refusals.take(address, time.monotonic())

    def is_tiresome(self, address: str) -> bool:
        """Say whether an address was refused so often that it has to wait."""
        return self.refusals.is_spent(address, time.monotonic())


_REFUSAL = b"HTTP/1.1 4"


class _TooLarge(Exception):
    """A head is longer than it may be. httptools ends the parsing for it."""


class _Writable:
    """A transport on which a late write is no error: its peer has just gone.

    Notes what an answer begins with.
    """

    __slots__ = ("_note_refusal", "_transport", "close", "is_closing")

    def __init__(self, transport: Transport, note_refusal: Callable[[], None]) -> None:
        self._transport = transport
        self._note_refusal: Callable[[], None] | None = note_refusal
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._note_refusal is not None and data.startswith(_REFUSAL):
            self._note_refusal()
        self._note_refusal = None
        if not self._transport.is_closing():
            self._transport.write(data)


class GuardedProtocol(HttpToolsProtocol):
    """Cuts the connection when a request is not complete in time, or too large.

    At most ``MAX_REQUEST_BYTES`` are read of a request that is not complete, and what
    one read brings.
    """

    guard: Guard
    on_shutdown: Callable[[], None] | None = None
    _address = UNKNOWN
    _is_proxy = False
    _deadline: TimerHandle | None = None
    # When reading begins, if that is late.
    _late: TimerHandle | None = None
    _held = b""
    # Bytes since the last complete request; bytes and headers of this one's head.
    _received = _head_bytes = _head_count = 0
    _is_head_complete = False
    _is_refused = False
    # uvicorn knows the last request only; the one that is being answered is the first.
    _unanswered: deque[RequestResponseCycle] | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Expect a request soon, unless there are too many connections."""
        guard, others = self.guard, len(self.connections)
        super().connection_made(transport)
        if self.client is not None:
            self._address = one_address(self.client[0])
            self._is_proxy = guard.proxies.is_proxy(self.client[0])
        is_operators = self.server and self.server[1] == guard.operators_port
        spare = OPERATORS_SPARE if is_operators else 0
        leaver = guard.plain.enter(transport, self._address, others, spare)
        if leaver is not None:
            guard.counters.connections_cut_full += 1
            leaver.abort()
            self._note_refusal()
        if leaver is not transport:
            self._set_deadline()
            is_late = not is_operators and not self._is_proxy
            if is_late and guard.is_tiresome(self._address):
                guard.counters.connections_read_late += 1
                self._late = self.loop.call_later(LATE_S, self._read_late)

    def data_received(self, data: bytes) -> None:
        """Read on, as far as the request may go."""
        if self._late is not None:
            # What one read has brought waits here, the rest in the kernel.
            self.transport.pause_reading()
            self._held += data
            return
        if self._is_refused:
            self._received += len(data)
            if self._received > LINGER_BYTES:
                self.transport.pause_reading()
            return
        if self.transport.is_closing():
            return
        if self._deadline is None and self._is_idle():
            # Also for what is no request yet, such as empty lines.
            self._set_deadline()
        self._received += len(data)
        super().data_received(data)
        guard = self.guard
        if self._received > MAX_REQUEST_BYTES:
            if not self._is_head_complete:
                self._refuse(431)
            elif self._received > guard.max_body_bytes:
                self._refuse(413)

    def on_message_begin(self) -> None:
        """Begin to read a request, put this object in its scope."""
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: self}  # type: ignore[dict-item]
        self._head_bytes = self._head_count = 0
        self._is_head_complete = False
        if self._deadline is None:
            self._set_deadline()

    def on_url(self, url: bytes) -> None:
        """Read a part of the address. Raises _TooLarge."""
        self._grow(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header. Raises _TooLarge."""
        self._grow(len(name) + len(value))
        self._head_count += 1
        if self._head_count > MAX_HEADERS:
            raise _TooLarge
        # Trailers come from the client, also where a proxy has written the headers.
        if not self._is_head_complete:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Run the application on a request whose head is there. Raises _TooLarge."""
        self._is_head_complete = True
        self.guard.plain.answer(self.transport)
        before = self.cycle
        super().on_headers_complete()
        if self.cycle is not before:
            note_refusal = partial(self._note_refusal, self.headers)
            writable = _Writable(self.transport, note_refusal)
            self.cycle.transport = cast(Transport, writable)
            if self._unanswered is None:
                self._unanswered = deque()
            self._unanswered.append(self.cycle)
        if len(self.pipeline) > MAX_PIPELINED:
            raise _TooLarge

    def on_message_complete(self) -> None:
        """Expect nothing more of this request."""
        self._drop_deadline()
        self._received = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        if self._unanswered:
            self._unanswered.popleft()
        super().on_response_complete()
        if self._is_idle() and not self.transport.is_closing():
            self.guard.plain.wait(self.transport, self._address)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over; refuse what the library cannot read."""
        self._drop_deadline()
        self._received = 0
        headers = list(self.scope["headers"])
        if not self.url.isascii() or not may_upgrade(headers):
            self._refuse(400)
            return
        # The stream need not read the request a second time.
        self.connections.discard(self)
        protocol = StreamProtocol(self.config, self.server_state, self.app_state)
        protocol.plain, protocol.refusals = self.guard.plain, self.guard.refusals
        protocol.charged = self._charged(headers)
        protocol.connection_made(self.transport)
        self.transport.set_protocol(protocol)
        protocol.begin(self.scope["method"], self.url.decode("ascii"), headers)
        self._let_go()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is no request, or too long a head."""
        is_too_large = self._head_count > MAX_HEADERS or self._head_bytes > (
            MAX_REQUEST_BYTES
        )
        self._refuse(431 if is_too_large else 400)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and its deadlines; end what is being answered."""
        self._drop_deadline()
        if self._late is not None:
            self._late.cancel()
        self.guard.plain.leave(self.transport)
        super().connection_lost(exc)
        for cycle in self._unanswered or ():
            cycle.disconnected = True
            cycle.message_event.set()
        self._let_go()

    def shutdown(self) -> None:
        """Let a response that goes on and on end."""
        super().shutdown()
        if self.on_shutdown is not None:
            self.on_shutdown()

    def abort(self) -> None:
        """Cut the connection, whatever is still to be sent."""
        self.transport.abort()

    def give_up(self) -> None:
        """Cut the connection in the middle of its requests: the server stops."""
        for cycle in self._unanswered or ():
            # Else uvicorn logs a fault of the application for each.
            cycle.disconnected = True
        self.abort()

    def become_stream(self) -> None:
        """Count no longer: what is counted now is the stream.

        It goes on for hours: little of it waits for a peer that does not read.
        """
        self.guard.plain.leave(self.transport)
        # uvloop raises for one that is closed: its peer may have gone by now.
        if not self.transport.is_closing():
            self.transport.set_write_buffer_limits(high=STREAM_UNSENT_BYTES)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _grow(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > MAX_REQUEST_BYTES:
            raise _TooLarge

    def _refuse(self, status: int) -> None:
        if self._is_refused or self.transport.is_closing():
            return
        self._note_refusal()
        counters = self.guard.counters
        if status == 400:
            counters.requests_invalid += 1
        else:
            counters.requests_too_large += 1
        if self._is_idle():
            self._write_refusal(status)
        elif self.pipeline or self.cycle.response_started:
            # Nothing can be said in the middle of an answer.
            self.abort()
        else:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._write_refusal(status)

    def _write_refusal(self, status: int) -> None:
        """Answer and close, but not before the peer could read the answer.

        A connection that is closed with something unread is reset, and what was sent
        last is lost.
        """
        self._is_refused = True
        self._received = 0
        self._drop_deadline()
        head = b"content-length: 0\r\nconnection: close\r\n\r\n"
        self.transport.write(STATUS_LINE[status] + head)
        self.transport.write_eof()
        self._deadline = self.loop.call_later(LINGER_S, self.abort)

    def _set_deadline(self) -> None:
        within_s = self.guard.request_s
        self._deadline = self.loop.call_later(within_s, self._cut_late)

    def _cut_late(self) -> None:
        self._deadline = None
        self.guard.counters.connections_cut_late += 1
        self._note_refusal()
        self.abort()

    def _read_late(self) -> None:
        self._late = None
        held, self._held = self._held, b""
        if held and not self.transport.is_closing():
            self.transport.resume_reading()
            self.data_received(held)

    def _let_go(self) -> None:
        """Drop what refers to this object, which would wait for the collector."""
        self.parser = self.scope = self.cycle = None  # type: ignore[assignment]
        self._unanswered = None
        self.pipeline.clear()

    def _note_refusal(self, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        """Charge a refusal of the request with these headers, or of the newest one."""
        if self._is_head_complete:
            headers = headers or self.headers
        address = self._charged(headers)
        if address is not None:
            self.guard.note_refusal(address)

    def _charged(self, headers: Sequence[tuple[bytes, bytes]]) -> str | None:
        """Return whom a refusal is charged to: a proxy's client, not the proxy."""
        if not self._is_proxy:
            return self._address
        client = self.guard.proxies.client_of(headers)
        return None if client is None else one_address(client)

    def _drop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def create_protocol(guard: Guard) -> type[GuardedProtocol]:
    """Return the protocol with these bounds."""
    return type("Guarded", (GuardedProtocol,), {"guard": guard})


def connection_of(scope: MutableMapping[str, Any]) -> GuardedProtocol:
    """Return the request's connection."""
    connection: GuardedProtocol = scope["extensions"][EXTENSION]
    return connection


def cut_at_stop(app: ASGIApp) -> ASGIApp:
    """Return an application whose requests are cut if a planned stop cancels them.

    uvicorn says how many those are, and has no trace for each.
    """

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        except CancelledError:
            connection_of(scope).give_up()

    def serve(scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        # What is around a stream costs memory for as long as it lasts.
        return (answer if scope["type"] == "http" else app)(scope, receive, send)

    return serve
