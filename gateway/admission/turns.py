"""Turns at what only a few may do at a time: each address has its own queue.

Whoever asks for much waits behind himself alone, and how many may wait is bounded.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class NoTurn(Exception):
    """Too many wait already."""


class Turns:
    """Lets ``at_once`` work at a time; of one address ``at_once`` - 1, at least one.

    ``most_waiting`` may wait, ``most_each`` of one address. Addresses take turns;
    whoever stops waiting leaves the queue.
    """

    def __init__(self, at_once: int, most_waiting: int, most_each: int) -> None:
        self._at_once = at_once
        self._each_at_once = max(1, at_once - 1)
        self._most_waiting = most_waiting
        self._most_each = most_each
        self._queues: dict[str, deque[asyncio.Future[None]]] = {}
        self._working: Counter[str] = Counter()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return sum(map(len, self._queues.values()))

    @asynccontextmanager
    async def taken(self, address: str) -> AsyncIterator[None]:
        """Wait for a turn and have it within the block. Raises NoTurn."""
        if not self._may_work(address):
            await self._wait(address)
        else:
            self._working[address] += 1
        try:
            yield
        finally:
            self._leave(address)

    def _may_work(self, address: str) -> bool:
        return (
            self._working.total() < self._at_once
            and self._working[address] < self._each_at_once
        )

    async def _wait(self, address: str) -> None:
        queue = self._queues.setdefault(address, deque())
        if len(queue) >= self._most_each or self.waiting >= self._most_waiting:
            if not queue:
                del self._queues[address]
            raise NoTurn
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave(address)
            else:
                self._forget(address, turn)
            raise

    def _forget(self, address: str, turn: "asyncio.Future[None]") -> None:
        queue = self._queues.get(address, deque())
        if turn in queue:
            queue.remove(turn)
        if not queue:
            self._queues.pop(address, None)

    def _leave(self, address: str) -> None:
        self._working[address] -= 1
        if not self._working[address]:
            del self._working[address]
        # Who has just worked goes behind the others.
        queue = self._queues.pop(address, None)
        if queue is not None:
            self._queues[address] = queue
        for name in tuple(self._queues):
            if self._may_work(name):
                self._call(name)

    def _call(self, address: str) -> None:
        """Give the first of an address who still waits his turn."""
        queue = self._queues[address]
        while queue:
            turn = queue.popleft()
            if not turn.done():
                self._working[address] += 1
                turn.set_result(None)
                break
        if not queue:
            del self._queues[address]
