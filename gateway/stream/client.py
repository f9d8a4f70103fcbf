"""One client's outbox: what it is due next, and when its stream is over.

It writes nothing itself: whoever writes to the connection asks for the next frame.
"""

import asyncio
from dataclasses import dataclass, field
from secrets import randbelow, token_hex
from typing import Literal, Protocol

from gateway.stream.commands import ClientCommands
from gateway.stream.counters import Counters
from gateway.stream.delivery import Delivery
from gateway.stream.frames import heartbeat_frame, is_members, message_frame
from gateway.stream.lifetimes import Lifetime
from tickthrottle_client.tick_v1 import CloseCode

RECONNECT_WITHIN_MS = 3_000
"""Clients are told to come back at a random time up to this after a planned end."""

RETURN_AFTER_MS = 30_000
"""A client that an operator has closed is told to come back after this."""

MAX_REASON_BYTES = 123
"""What a close frame has room for beside its code (RFC 6455, 5.5)."""

MAX_WAITING_ANSWERS = 16
"""Answers a client may leave unread before its messages are no longer read."""


Kind = Literal["websocket", "sse"]
"""How a client is connected."""


@dataclass(frozen=True, slots=True)
class Ending:
    """Why this side ends a connection. ``notice`` is sent first, if there is room.

    A reason that is too long for a close frame is cut.
    """

    code: CloseCode
    reason: str
    notice: bytes | None = None

    def __post_init__(self) -> None:
        """Make the reason fit."""
        encoded = self.reason.encode("utf-8", "replace")[:MAX_REASON_BYTES]
        object.__setattr__(self, "reason", encoded.decode("utf-8", "ignore"))


def restart_notice(reason: str) -> bytes:
    """Build the notice of a planned end; not all shall come back at once."""
    return _notice("restart", randbelow(RECONNECT_WITHIN_MS), reason)


def closed_notice(reason: str) -> bytes:
    """Build the notice of an end by an operator: not to come back at once."""
    return _notice("closed", RETURN_AFTER_MS, reason)


def _notice(code: str, after_ms: int, message: str) -> bytes:
    return message_frame(
        "notice", code=code, reconnect_after_ms=after_ms, message=message
    )


class Sender(Protocol):
    """Writes one client's frames to its connection."""

    def wake(self) -> None:
        """Send what the client is due, now or soon."""

    @property
    def is_ready(self) -> bool:
        """Whether a frame would be written at once, by ``write``."""

    def write(self, frame: bytes) -> int:
        """Write a frame while ``is_ready``; return how many bytes that took."""

    @property
    def unsent_bytes(self) -> int:
        """How much was written that the kernel has not taken yet, if that is known."""

    def stuck_s(self, now_s: float) -> float:
        """Return for how long the peer has taken nothing of what waits for it."""

    def end(self, ending: Ending) -> None:
        """Close the connection, cut it if that does not help."""


@dataclass(slots=True, eq=False)
class Client:
    """Answers, the feed's status, snapshots, updates: in this order, to one client.

    ``id`` names the connection, in its welcome, in logs and to operators. Times in
    seconds are of a monotonic clock. Filled by its receiver and by the hub, drained by
    its one sender.
    """

    commands: ClientCommands
    sender: Sender
    lifetime: Lifetime
    _counters: Counters
    connected_s: float
    kind: Kind = "websocket"
    id: str = field(default_factory=lambda: f"c-{token_hex(4)}")
    delivery: Delivery = field(init=False)
    sent_s: float = field(init=False)
    # When more than a heartbeat may be due.
    check_s: float = field(init=False)
    ending: Ending | None = None
    # A list: most of the time there is none, and never more than a few.
    _answers: list[bytes] = field(default_factory=list)
    _room: asyncio.Event | None = None
    _status: bytes | None = None
    # The time of day when a heartbeat became due.
    _heartbeat_us: int | None = None

    def __post_init__(self) -> None:
        """Expect nothing before something is asked for."""
        self.delivery = self.commands.delivery
        self.sent_s = self.check_s = self.connected_s

    def post(self, frame: bytes) -> None:
        """Send an answer. Wait for ``room`` before making the next one."""
        self._answers.append(frame)
        # What was answered may have changed it.
        self.check_s = 0.0
        self.sender.wake()

    async def room(self) -> None:
        """Wait until fewer than the allowed number of answers is waiting."""
        while len(self._answers) >= MAX_WAITING_ANSWERS:
            self._room = asyncio.Event()
            await self._room.wait()

    def forget_answers(self) -> None:
        """Drop the answers that were not sent: nobody is there to read them."""
        self._answers.clear()
        self._open_room()

    def announce(self, status: bytes) -> None:
        """Have the feed's status sent; one not sent yet is replaced."""
        self._status = status

    def serve(self, now_s: float) -> bool:
        """Have the client sent what it is due, at once if that is only an update.

        Return whether it needs no further turn: one that has much to fold does.
        """
        sender, has_words = self.sender, self._has_words()
        if not has_words and sender.is_ready:
            frame = self.delivery.steady_frame()
            if frame is not None:
                if frame:
                    self.sent(1, sender.write(frame), now_s)
                return True
        if self.delivery.is_owed or has_words:
            sender.wake()
        return self.delivery.is_folded

    def beat(self, now_us: int, now_s: float) -> None:
        """Send a heartbeat, unless there is something better to send.

        ``now_us`` is the time of day, ``now_s`` that of a monotonic clock.
        """
        if self.ending is not None:
            return
        sender, delivery = self.sender, self.delivery
        if sender.is_ready and not delivery.is_owed and not self._has_words():
            frame = self._heartbeat(now_us)
            self.sent(1, sender.write(frame), now_s)
            return
        self._heartbeat_us = now_us
        sender.wake()

    def end(self, ending: Ending) -> None:
        """Send no more data; answers and the notice still go if there is room."""
        if self.ending is None:
            self.ending = ending
            self._status = ending.notice
            self.sender.end(ending)

    def sent(self, frames: int, size: int, now_s: float) -> None:
        """Note that some frames, of ``size`` bytes in all, have just been written."""
        self.sent_s = now_s
        self._counters.frames_sent += frames
        self._counters.sent_bytes += size

    def next_frame(self) -> bytes | None:
        """Return what to write next, None if there is nothing."""
        if self._answers:
            self._open_room()
            return self._answers.pop(0)
        if self._status is not None:
            status, self._status = self._status, None
            return status
        if self.ending is not None:
            return None
        statuses = self.commands.statuses
        frame = None if statuses is None else statuses.next_frame()
        if frame is None:
            frame = self.delivery.next_frame()
            if statuses is not None and is_members(frame):
                # Its keys stand for further instruments: these have statuses, too.
                statuses.request()
        bars = self.commands.bars
        if frame is None and bars is not None:
            frame = bars.next_frame()
        trades = self.commands.trades
        if frame is None and trades is not None:
            frame = trades.next_frame()
        if self._heartbeat_us is not None:
            if frame is None:
                frame = self._heartbeat(self._heartbeat_us)
            self._heartbeat_us = None
        return frame

    def _heartbeat(self, now_us: int) -> bytes:
        position = self.delivery.position()
        frame = heartbeat_frame(position, now_us)
        return self.delivery.with_chain(frame, position.offset)

    def _has_words(self) -> bool:
        """Say whether there is anything to be sent beside data."""
        statuses = self.commands.statuses
        return bool(
            self._answers
            or (statuses is not None and statuses.is_owed)
            or self._status is not None
            or self._heartbeat_us is not None
            or self.ending is not None
        )

    def _open_room(self) -> None:
        if self._room is not None:
            self._room.set()
            self._room = None
