"""Clients that speak ``tick.v1`` over a WebSocket: prompt, slow, stalled, cut."""

import json
import time
from collections.abc import Sequence
from typing import Any

import orjson
from picows import (
    WSCloseCode,
    WSError,
    WSFrame,
    WSListener,
    WSMsgType,
    WSTransport,
    ws_connect,
)

from loadtest.client_mix import Member
from loadtest.clients.client_loop import ClientLoop
from loadtest.clients.load_client import LoadClient
from loadtest.clients.targets import Target, create_socket
from loadtest.judge.rows import ExactNumber, Frame, Item, to_item
from tickthrottle_client.row_positions import EVERY, RowPositions

HANDSHAKE_S = 30.0

SMALL_BUFFER_BYTES = 4_096
"""What the kernel may receive for a client that does not read."""


class SocketClient(LoadClient, WSListener):
    """Reads as fast as it can: ``watch`` and ``market``."""

    buffer_bytes: int | None = None

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self.transport: WSTransport | None = None
        host = f"[{target.host}]" if ":" in target.host else target.host
        self._url = f"ws://{host}:{target.port}/v1/stream"

    def open(self) -> None:
        self.client_loop.run(self._open())

    def cut(self) -> None:
        if self.transport is not None:
            self.transport.disconnect(graceful=False)

    def leave(self) -> None:
        self.is_over = True
        if self.transport is not None:
            self.transport.send_close(WSCloseCode.OK)
            self.transport.disconnect()

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.transport = transport
        since = self.came(time.time() * 1e3)
        if self.is_over:
            self.leave()
            return
        if self.target.token is not None:
            self._say({"op": "auth", "id": 0, "token": self.target.token})
        message = {"op": "subscribe", "id": 1, "keys": self.member.keys, **self.asks()}
        if since is not None:
            message["since"] = {"epoch": since[0], "offset": since[1]}
        self._say(message)

    def asks(self) -> dict[str, Any]:
        """Return what else a new connection's subscribe asks for."""
        return {}

    def on_ws_frame(self, transport: WSTransport, frame: WSFrame) -> None:
        """Stamp and queue a message, answer a goodbye; nothing else."""
        if frame.msg_type == WSMsgType.TEXT:
            self.heard_ms = time.time() * 1e3
            self.client_loop.put(self.heard, frame.get_payload_as_bytes())
        elif frame.msg_type == WSMsgType.CLOSE:
            payload = frame.get_payload_as_bytes()
            if payload:
                self.close_code = str(int.from_bytes(payload[:2]))
            transport.send_close(WSCloseCode.OK)
            transport.disconnect()

    def on_ws_disconnected(self, transport: WSTransport) -> None:
        """Have the end come after all that was received before."""
        self.transport = None
        self.client_loop.put(self.heard, None)

    def _say(self, message: dict[str, Any]) -> None:
        if self.transport is not None:
            self.transport.send(WSMsgType.TEXT, orjson.dumps(message))

    async def _open(self) -> None:
        try:
            await ws_connect(
                lambda: self,
                self._url,
                websocket_handshake_timeout=HANDSHAKE_S,
                socket_factory=lambda _: create_socket(
                    self.target, self.member.address, self.buffer_bytes
                ),
                max_frame_size=1 << 26,
                proxy=None,
            )
        except (OSError, WSError):
            self.refused()


class CompactClient(SocketClient):
    """Has rows come by position, of all fields, as our own clients do."""

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self._positions = RowPositions()

    def asks(self) -> dict[str, Any]:
        """Ask for rows by position; what was said of them before is void."""
        self._positions = RowPositions()
        return {"fields": [EVERY]}

    def read(self, payload: bytes) -> tuple[Frame, Sequence[Item]]:
        """Return a frame and the items that its rows stand for."""
        frame = json.loads(payload, parse_float=ExactNumber)
        self._positions.take(frame)
        return frame, [to_item(item) for item in frame.get("data", ())]


class SlowClient(SocketClient):
    """Pauses for ``every_s``, reads until it has caught up, pauses again.

    A stalled one pauses for longer than a gateway is patient: it is closed, and comes
    back. It has to read at last, or it would not learn that the line has ended.
    """

    buffer_bytes = SMALL_BUFFER_BYTES

    def __init__(self, member: Member, target: Target, client_loop: ClientLoop) -> None:
        super().__init__(member, target, client_loop)
        self.is_paused = False

    def joined(self) -> None:
        self.pause()

    def after(self, frame: Frame, at_ms: float) -> None:
        """Pause again once the newest window was read."""
        window = frame.get("window")
        if (
            frame["type"] in ("update", "heartbeat")
            and window is not None
            and not self.is_paused
            and self.checker.is_joined
            and window >= self.client_loop.newest_window
            and at_ms - window < self.member.every_s * 1e3
        ):
            self.pause()

    def look(self, now_ms: float) -> None:
        """A line that is not read is not silent."""
        if not self.is_paused:
            super().look(now_ms)

    def pause(self) -> None:
        """Stop reading, for as long as this kind does."""
        transport = self.transport
        if transport is not None and not self.is_paused:
            transport.underlying_transport.pause_reading()
            self.is_paused = True
            self.client_loop.later(self.member.every_s, lambda: self.unpause(transport))

    def unpause(self, transport: WSTransport) -> None:
        """Read on, if it is still the same connection."""
        if transport is self.transport:
            self.is_paused = False
            self.heard_ms = time.time() * 1e3
            transport.underlying_transport.resume_reading()

    def on_ws_connected(self, transport: WSTransport) -> None:
        self.is_paused = False
        super().on_ws_connected(transport)

    def leave(self) -> None:
        """Cut: a goodbye behind what was not read would not arrive."""
        self.is_over = True
        self.cut()


class ReconnectingClient(SocketClient):
    """Cut at random, about every ``every_s``; comes back and resumes."""

    def joined(self) -> None:
        transport = self.transport
        after_s = self.client_loop.chance.expovariate(1 / self.member.every_s)

        def end() -> None:
            if transport is self.transport:
                self.cut_by_choice()

        self.client_loop.later(after_s, end)
