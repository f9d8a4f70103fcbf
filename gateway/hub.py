"""The hub: the set of clients. Publishing hands out work and waits for nobody."""

import asyncio
from collections import deque
from contextlib import suppress

from gateway.board import Board
from gateway.counters import Counters
from gateway.frames import Update
from gateway.limits import Admission
from gateway.session import Session
from gateway.settings import GatewaySettings

MAX_WAITING_ANSWERS = 16
"""Answers a client may leave unread before its messages are no longer read."""


class Client:
    """One connection's outbox: answers, the feed's status, snapshots, updates.

    Filled by its receiver and by the hub, drained by its one sender.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._answers: deque[bytes] = deque()
        self._status: bytes | None = None
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()

    def post(self, frame: bytes) -> None:
        """Send an answer. Wait for ``room`` before making the next one."""
        self._answers.append(frame)
        if len(self._answers) >= MAX_WAITING_ANSWERS:
            self._room.clear()
        self._wake.set()

    async def room(self) -> None:
        """Wait until fewer than the allowed number of answers is waiting."""
        await self._room.wait()

    def announce(self, status: bytes) -> None:
        """Send the feed's status; one not sent yet is replaced."""
        self._status = status
        self._wake.set()

    def offer(self, update: Update) -> None:
        """Take in an update already on the board; sent when the client is ready."""
        if self.session.offer(update):
            self._wake.set()

    def restart(self) -> None:
        """Have everything sent anew."""
        self.session.restart()
        self._wake.set()

    def next_frame(self) -> bytes | None:
        """Return what to write next: answers first, then status, then data."""
        if self._answers:
            frame = self._answers.popleft()
            self._room.set()
            return frame
        if self._status is not None:
            status, self._status = self._status, None
            return status
        return self.session.next_frame()

    async def wait(self, timeout_s: float) -> None:
        """Wait until there may be something to send, at most ``timeout_s``."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._wake.wait()
        self._wake.clear()


class Hub:
    """Every connected client, and what all of them share.

    ``publish`` and its like are synchronous: the slowest client costs the others
    nothing.
    """

    def __init__(
        self, board: Board, settings: GatewaySettings, counters: Counters
    ) -> None:
        self.board = board
        self.settings = settings
        self.counters = counters
        self.admission = Admission(
            settings.max_clients, settings.max_clients_per_address
        )
        self._clients: set[Client] = set()
        self._status: bytes | None = None

    def __len__(self) -> int:
        return len(self._clients)

    def join(self, now_s: float) -> Client:
        """Add a client; it hears the feed's status if that is not the usual one."""
        client = Client(Session(self.board, self.settings, self.counters, now_s))
        if self._status is not None:
            client.announce(self._status)
        self._clients.add(client)
        return client

    def leave(self, client: Client) -> None:
        """Forget a client."""
        self._clients.discard(client)

    def publish(self, update: Update) -> None:
        """Offer an update, already on the board, to every client."""
        self.counters.updates_published += 1
        for client in self._clients:
            client.offer(update)

    def restart(self) -> None:
        """Send every client its snapshot anew: the board was replaced."""
        for client in self._clients:
            client.restart()

    def announce(self, status: bytes, *, is_lasting: bool) -> None:
        """Tell every client the feed's status, and if it lasts those who come later."""
        self._status = status if is_lasting else None
        for client in self._clients:
            client.announce(status)
