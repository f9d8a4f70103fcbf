"""uvicorn's WebSocket protocol with what ASGI cannot say.

ASGI's ``send`` accepts a frame and only then waits for room, encodes the text once
more for every client, and offers no way to end a connection whose peer has stopped
reading. The application finds this object in the connection's scope.
"""

import asyncio
import socket
from asyncio.transports import BaseTransport
from collections.abc import MutableMapping
from secrets import randbelow
from typing import Any, cast

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import (
    WebSocketsSansIOProtocol,
)
from websockets.exceptions import InvalidState

from gateway.frames import notice_frame

EXTENSION = "tickthrottle.stream"

MAX_UNSENT_BYTES = 65_536
"""What the kernel may hold of a connection beyond what is on its way."""

ABORT_AFTER_S = 5.0
"""How long a closed peer may take to answer before the connection is cut."""

RECONNECT_WITHIN_MS = 3_000
"""Clients are told to come back at a random time up to this after a planned stop."""


class StreamProtocol(WebSocketsSansIOProtocol):
    """Writes prebuilt frames, says when there is room, and can end what is stuck."""

    def connection_made(self, transport: BaseTransport) -> None:
        """Bound what the kernel queues: values in it can no longer be conflated."""
        super().connection_made(transport)
        connection = transport.get_extra_info("socket")
        # Not every system has it; there the kernel's own limit applies.
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            connection.setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MAX_UNSENT_BYTES
            )

    async def run_asgi(self) -> None:
        """Run the application with this object in its scope."""
        extensions = cast(dict[str, Any], self.scope["extensions"])
        extensions[EXTENSION] = self
        await super().run_asgi()

    def handle_ping(self) -> None:
        """Answer a ping, unless the peer does not even read what it was sent."""
        if self.writable.is_set():
            super().handle_ping()
        else:
            self.conn.data_to_send()

    def shutdown(self) -> None:
        """Tell the client when to come back, then close with 1012."""
        if self.handshake_complete and not self._is_ending():
            delay_ms = randbelow(RECONNECT_WITHIN_MS)
            self._write_text(notice_frame("restart", delay_ms, "planned stop"))
        super().shutdown()

    async def drain(self, patience_s: float) -> bool:
        """Wait until there is room to write.

        False if the peer took not one byte for ``patience_s``.
        """
        while not self.writable.is_set():
            waiting = self.transport.get_write_buffer_size()
            try:
                async with asyncio.timeout(patience_s):
                    await self.writable.wait()
            except TimeoutError:
                if self.transport.get_write_buffer_size() >= waiting:
                    return False
        return True

    def send_frame(self, payload: bytes) -> None:
        """Write one text frame. Raises ClientDisconnected if the peer has gone."""
        if self._is_ending():
            raise ClientDisconnected
        try:
            self._write_text(payload)
        except InvalidState:
            raise ClientDisconnected from None

    def end(self, code: int, reason: str) -> None:
        """Close without waiting for room; cut the connection if that does not help."""
        if self.disconnected:
            return
        if not self._is_ending():
            self.conn.send_close(code, reason)
            self.transport.write(b"".join(self.conn.data_to_send()))
            self.close_sent = True
            # The peer's answer ends the closing handshake: it has to be read.
            if self.read_paused:
                self.read_paused = False
                self.transport.resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        self.close_timer = self.loop.call_later(ABORT_AFTER_S, self.transport.abort)

    def _is_ending(self) -> bool:
        return self.disconnected or self.close_sent or self.transport.is_closing()

    def _write_text(self, payload: bytes) -> None:
        self.conn.send_text(payload)
        self.transport.write(b"".join(self.conn.data_to_send()))


def stream_of(scope: MutableMapping[str, Any]) -> StreamProtocol:
    """Return the connection's protocol object.

    Raises RuntimeError under any server that ``create_server`` did not build.
    """
    stream = scope.get("extensions", {}).get(EXTENSION)
    if not isinstance(stream, StreamProtocol):
        raise RuntimeError("the stream needs uvicorn with ws=StreamProtocol")
    return stream
