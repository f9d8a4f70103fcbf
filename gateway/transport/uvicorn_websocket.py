"""uvicorn's WebSocket protocol that writes finished frames straight to the transport.

ASGI's ``send`` takes a frame before there is room for it, encodes its text once more
for every client, costs a task for each of them, and offers no way to end a connection
whose peer has stopped reading. The application finds this object in the connection's
scope.
"""

import asyncio
import os
import time
from collections.abc import MutableMapping, Sequence
from random import randbytes
from typing import Any, cast

from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.datastructures import Headers
from websockets.frames import Frame
from websockets.http11 import Request
from websockets.protocol import Protocol

from gateway.admission.connections import PlainConnections
from gateway.admission.limits import Budgets
from gateway.stream.client import Client, Ending, restart_notice
from gateway.stream.close_log import GONE
from gateway.transport.deflate import (
    MIN_BYTES,
    deflate,
    offer_compression,
    takes_shared_frames,
)
from tickthrottle_client.tick_v1 import CloseCode, is_final

EXTENSION = "tickthrottle.stream"

ABORT_AFTER_S = 5.0
"""How long a closed peer may take to answer before the connection is cut."""

MAX_SMALL_FRAMES_PER_S = 1_000
"""Most pings, pongs and small pieces of messages a peer may send in a second."""

DEAF_TIMES = 10
"""A peer that goes on until it has sent this many times more is cut."""

SMALL_BYTES = 64
"""A piece of a message that is shorter is small."""

MAX_FRAGMENTS = 64
"""A message in more pieces is put together while it comes; it costs no more than whole.
"""

SHARED_BYTES = 8_192
"""Longer frames are handed to the transport as they are, shared by all clients."""


_PROTOCOL_ERROR = 1002

_REASONS = {
    CloseCode.RESTART.value: "planned stop",
    CloseCode.INVALID_TEXT.value: "text that is not UTF-8",
}


class _Inbox:
    """What ``asyncio.Queue`` does for one reader, in a tenth of the memory."""

    __slots__ = ("_messages", "_reader")

    def __init__(self) -> None:
        self._messages: list[Any] = []
        self._reader: asyncio.Future[None] | None = None

    def empty(self) -> bool:
        return not self._messages

    def put_nowait(self, message: Any) -> None:
        self._messages.append(message)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    async def get(self) -> Any:
        while not self._messages:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        self._reader = None
        return self._messages.pop(0)


class _Gate:
    """What ``asyncio.Event`` does for one that hardly ever has to wait."""

    __slots__ = ("_event",)

    def __init__(self) -> None:
        self._event: asyncio.Event | None = None

    def is_set(self) -> bool:
        return self._event is None

    def clear(self) -> None:
        if self._event is None:
            self._event = asyncio.Event()

    def set(self) -> None:
        if self._event is not None:
            self._event.set()
            self._event = None

    async def wait(self) -> None:
        if self._event is not None:
            await self._event.wait()


class StreamProtocol(WebSocketsSansIOProtocol):
    """A connection, and the sender of its client."""

    plain: PlainConnections[asyncio.Transport]
    """Where the connection counts until it is a client's."""

    refusals: Budgets
    """Charged if the client gets no stream, or loses it by its own fault."""

    charged: str | None = None
    """The client's address, None where a proxy does not say it."""

    # The second in which small frames were counted, and how many.
    _small_frames: tuple[int, int] = (0, 0)

    _client: Client | None = None
    _compresses = False
    _descriptor: int | None = None
    # How many bytes waited when they were last seen to become fewer, and when.
    _stuck: tuple[int, float] | None = None

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        # There are thousands of connections, and these two are half of what one costs.
        self.queue = cast(asyncio.Queue[Any], _Inbox())
        self.writable = cast(asyncio.Event, _Gate())
        if self.config.ws_per_message_deflate:
            offer_compression(self.conn)

    def begin(
        self, method: str, target: str, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        """Take in the request that the connection began with, which was read before.

        ``target`` is ASCII, ``headers`` are what ``may_upgrade`` has let pass.
        """
        conn = self.conn
        conn.parser.close()
        # Whatever is read from now on are frames.
        conn.parser = Protocol.parse(conn)
        next(conn.parser)
        names = Headers((n.decode("ascii"), v.decode("latin-1")) for n, v in headers)
        self.handle_connect(Request(target, names, method))

    async def run_asgi(self) -> None:
        """Run the application with this object in its scope."""
        extensions = cast(dict[str, Any], self.scope["extensions"])
        extensions[EXTENSION] = self
        try:
            await super().run_asgi()
        finally:
            del extensions[EXTENSION]

    async def send(self, message: Any) -> None:
        """Send what the application says."""
        if message.get("status", 0) // 100 == 4:
            self._note_refusal()
        await super().send(message)
        if message["type"] == "websocket.http.response.body":
            # A refusal is an answer; uvicorn would log that there was none.
            self.handshake_complete = True

    def attach(self, client: Client) -> None:
        """Send this client's frames from now on."""
        self.plain.leave(self.transport)
        self._client = client
        self._compresses = takes_shared_frames(self.conn)
        self._descriptor = _plain_descriptor(self.transport)
        # What was needed for the handshake only.
        del self.request, self.response
        self.scope["headers"] = []

    def wake(self) -> None:
        """Write what the client is due, as far as there is room.

        Room first, then the frame: what is not built yet cannot grow old. Short frames
        go out together.
        """
        client = self._client
        if client is None or self._is_ending():
            return
        sent = size = waiting = 0
        parts: list[bytes] = []
        while self.writable.is_set():
            frame = client.next_frame()
            if frame is None:
                break
            header, payload = self._encode(frame)
            parts += header, payload
            waiting += len(header) + len(payload)
            sent += 1
            if waiting >= SHARED_BYTES:
                self.transport.writelines(parts)
                size += waiting
                parts, waiting = [], 0
        if parts:
            self.transport.write(b"".join(parts))
        if sent:
            client.sent(sent, size + waiting, time.monotonic())

    @property
    def is_ready(self) -> bool:
        """Whether there is room, and frames need not be compressed."""
        return not self._compresses and self.writable.is_set() and not self._is_ending()

    def write(self, frame: bytes) -> int:
        """Write a frame, past the transport if the kernel takes it as it is."""
        if len(frame) >= SHARED_BYTES:
            parts = self._encode(frame)
            self.transport.writelines(parts)
            return sum(map(len, parts))
        data = _header(b"\x81", len(frame)) + frame
        taken = 0
        if self._descriptor is not None and not self.transport.get_write_buffer_size():
            try:
                taken = os.write(self._descriptor, data)
            except OSError:
                # The transport meets the same error, and ends the connection for it.
                taken = 0
        if taken < len(data):
            self.transport.write(data[taken:])
        return len(data)

    @property
    def unsent_bytes(self) -> int:
        """How much of what was written the kernel has not taken yet."""
        return self.transport.get_write_buffer_size()

    def stuck_s(self, now_s: float) -> float:
        """Return for how long not one byte was taken, 0 while there is room."""
        if self.writable.is_set():
            return 0.0
        waiting = self.unsent_bytes
        if self._stuck is None or waiting < self._stuck[0]:
            self._stuck = waiting, now_s
        return now_s - self._stuck[1]

    @property
    def protocol_end(self) -> tuple[int, str] | None:
        """Code and reason if this side has ended the connection, None if it has not.

        Also where nobody asked it to: at a stop of the server, when the peer breaks
        the protocol or does not answer a ping.
        """
        sent = self.conn.close_sent
        if sent is None or self.conn.close_rcvd_then_sent:
            return None
        return sent.code, sent.reason or _REASONS.get(sent.code, "")

    @property
    def peer_code(self) -> int:
        """The code with which the peer has ended the connection."""
        received = self.conn.close_rcvd
        return GONE if received is None else received.code

    def end(self, ending: Ending) -> None:
        """Close without waiting for room; cut the connection if that does not help."""
        if self.disconnected:
            return
        self.wake()
        if not self._is_ending():
            self.conn.send_close(ending.code, ending.reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            # The peer's answer ends the closing handshake: it has to be read.
            if self.read_paused:
                self.read_paused = False
                self.transport.resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(ABORT_AFTER_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the receiver go, which may be waiting for answers to be sent."""
        super().connection_lost(exc)
        self.plain.leave(self.transport)
        code, _ = self.protocol_end or (0, "")
        if code == _PROTOCOL_ERROR or is_final(code):
            self._note_refusal()
        if self._client is not None:
            self._client.forget_answers()
        # With these a connection that is gone would wait for the garbage collector.
        self._client = None
        self.conn.parser.close()

    def _note_refusal(self) -> None:
        if self.charged is not None:
            self.refusals.take(self.charged, time.monotonic())

    def pause_writing(self) -> None:
        """Note when there was no more room."""
        super().pause_writing()
        self._stuck = self.unsent_bytes, time.monotonic()

    def resume_writing(self) -> None:
        """Go on where there was no room."""
        super().resume_writing()
        self._stuck = None
        # Not now: this may be called by the transport in the middle of a write.
        self.loop.call_soon(self.wake)

    def handle_cont(self, event: Frame) -> None:
        """Take in a piece of a message; many small ones do not stay apart."""
        if len(event.data) < SMALL_BYTES and self._is_flooded():
            return
        if len(self.frames) >= MAX_FRAGMENTS:
            self.frames = [b"".join(self.frames)]
        super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """Hand a message on; end the connection for text that is not UTF-8.

        uvicorn would log a stack trace for it, as often as anybody likes.
        """
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                # A close of the peer's may have been read behind the text.
                if self.conn.close_sent is None:
                    code = CloseCode.INVALID_TEXT
                    self.conn.send_close(code, _REASONS[code.value])
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()

    def send_keepalive_ping(self) -> None:
        """Ask for a sign of life, with a frame as short to make as it is to send."""
        self.ping_timer = None
        if self._is_ending():
            return
        self.pending_ping_payload = randbytes(4)
        self.ping_sent_at = self.loop.time()
        self.transport.write(b"\x89\x04" + self.pending_ping_payload)
        patience_s = self.config.ws_ping_timeout
        if patience_s is not None:
            self.pong_timer = self.loop.call_later(patience_s, self.keepalive_timeout)

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer does not even read what it was sent."""
        if self._is_flooded():
            return
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def handle_pong(self, event: Frame) -> None:
        """Take in a sign of life."""
        if not self._is_flooded():
            super().handle_pong(event)

    def _is_flooded(self) -> bool:
        """Count a small frame; end the connection and say so if there are too many."""
        second, number = int(self.loop.time()), 1
        if second == self._small_frames[0]:
            number += self._small_frames[1]
        self._small_frames = second, number
        if number <= MAX_SMALL_FRAMES_PER_S:
            return False
        if number == MAX_SMALL_FRAMES_PER_S + 1:
            self.frames = []
            self.end(Ending(CloseCode.TOO_MANY_MESSAGES, "too many frames"))
        elif number > DEAF_TIMES * MAX_SMALL_FRAMES_PER_S:
            self.transport.abort()
        return True

    def shutdown(self) -> None:
        """Tell the client when to come back, then close with 1012."""
        if self.handshake_complete and not self._is_ending():
            self.transport.writelines(self._encode(restart_notice("planned stop")))
        super().shutdown()

    def _is_ending(self) -> bool:
        return self.disconnected or self.close_sent or self.transport.is_closing()

    def _encode(self, payload: bytes) -> tuple[bytes, bytes]:
        """Return head and payload of a text frame, unmasked."""
        first = b"\x81"
        if self._compresses and len(payload) >= MIN_BYTES:
            first, payload = b"\xc1", deflate(payload)
        return _header(first, len(payload)), payload


def may_upgrade(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    """Say whether a request has no body; their names are in lower case."""
    return all(
        name != b"transfer-encoding" and (name != b"content-length" or value == b"0")
        for name, value in headers
    )


def _header(first: bytes, size: int) -> bytes:
    """Return the head of an unmasked frame (RFC 6455, 5.2)."""
    if size < 126:
        return first + bytes((size,))
    if size < 65_536:
        return first + b"\x7e" + size.to_bytes(2)
    return first + b"\x7f" + size.to_bytes(8)


def _plain_descriptor(transport: asyncio.Transport) -> int | None:
    """Return the descriptor of a socket to which bytes go as they are."""
    if transport.get_extra_info("sslcontext") is not None:
        return None
    descriptor = transport.get_extra_info("socket")
    return None if descriptor is None else int(descriptor.fileno())


def stream_of(scope: MutableMapping[str, Any]) -> StreamProtocol:
    """Return the connection's protocol object."""
    stream: StreamProtocol = scope["extensions"][EXTENSION]
    return stream
