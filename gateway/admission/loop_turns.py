"""Turns at the event loop: a slice at a time for all, a share of its time for each.

Two hundred streams may ask for everything in one and the same turn of the loop, and a
thousand requests may come at once: each is short, and all of them are not. So what is
done for an address, or for the holder of a token, is charged by the time of a core that
it takes, in the loop and in threads alike; whoever has had his share waits.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import coroutine
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from gateway.admission.limits import Budgets

T = TypeVar("T")

SLICE_S = 0.005
"""In one turn of the event loop no more is begun after this long."""

WORK_MS_PER_S, ROW_MS = 300, 0.01
"""What one may have of a core: so much, or for the rows he may have worked out."""

MOST_REST_S = 0.1
"""A thread that worked for somebody in debt rests this long, piece by piece."""

BURST_S = 0.5
"""Who had none lately may have that of so many seconds at once."""


class LoopTurns:
    """Lets pieces of work begin, until a slice is over and while their payers may.

    The others begin in the next turns of the loop: one of each payer, in the order in
    which they came. Whoever asks for much waits behind himself.
    """

    def __init__(
        self, rows_per_s: float = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        ms_per_s = max(WORK_MS_PER_S, rows_per_s * ROW_MS)
        self._work_ms = Budgets(ms_per_s, round(ms_per_s * BURST_S))
        self._until_s: float | None = None
        self._next = asyncio.Event()
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def wait(self, payers: Sequence[str]) -> None:
        """Return when there is time for one more piece; the last payer has a queue."""
        queue = self._queues.get(payers[-1])
        if queue is None:
            queue = self._queues[payers[-1]] = asyncio.Lock()
        async with queue:
            while rest_s := self.rest_s(payers):  # noqa: ASYNC110 - time is awaited
                await asyncio.sleep(rest_s)
            while self._until_s is not None and time.monotonic() >= self._until_s:
                await self._next.wait()
        if self._until_s is None:
            self._until_s = time.monotonic() + SLICE_S
            asyncio.get_running_loop().call_soon(self._begin)

    @contextmanager
    def charged(self, payers: Sequence[str]) -> Iterator[None]:
        """Charge the block, in which nothing is waited for."""
        began_s = time.thread_time()
        try:
            yield
        finally:
            self.charge(payers, time.thread_time() - began_s)

    def charge(self, payers: Sequence[str], worked_s: float) -> None:
        """Take the time of a core from each of the payers."""
        now_s = self._clock()
        for payer in payers:
            self._work_ms.charge(payer, worked_s * 1_000, now_s)

    def rest_s(self, payers: Sequence[str]) -> float:
        """Return how long it is until each of the payers may have more done."""
        now_s = self._clock()
        return max(self._work_ms.wait_ms(payer, now_s) for payer in payers) / 1_000

    def _begin(self) -> None:
        self._until_s = None
        self._next.set()
        self._next.clear()


class LoopShare:
    """Whose share of the loop a request is worked on with, in its tasks and threads."""

    def __init__(self, turns: LoopTurns, address: str) -> None:
        self._turns = turns
        self.payers: tuple[str, ...] = (address,)

    async def wait(self) -> None:
        """Return when there is time for one more piece of the work."""
        await self._turns.wait(self.payers)

    def rest_s(self, worked_s: float) -> float:
        """Charge what a thread has done; return for how long it rests then.

        A process that stops waits for its threads: ``MOST_REST_S`` is the most.
        """
        self._turns.charge(self.payers, worked_s)
        return max(worked_s, min(self._turns.rest_s(self.payers), MOST_REST_S))

    async def charged(self, work: Awaitable[T]) -> T:
        """Work in this task, and charge for how long each step holds the loop."""
        _share.set(self)
        return await self._stepped(work)

    @coroutine
    def _stepped(self, work: Awaitable[T]) -> Generator[Any, Any, T]:
        steps = work.__await__()
        step: Callable[[Any], Any] = steps.send
        sent: Any = None
        while True:
            began_s = time.thread_time()
            try:
                awaited = step(sent)
            except StopIteration as end:
                result: T = end.value
                return result
            finally:
                self._turns.charge(self.payers, time.thread_time() - began_s)
            try:
                step, sent = steps.send, (yield awaited)
            except BaseException as error:  # noqa: BLE001 - as ``yield from`` does
                step, sent = steps.throw, error


_share: ContextVar[LoopShare | None] = ContextVar("loop share", default=None)


def current_share() -> LoopShare | None:
    """Return whose share the work here comes out of, None if it is nobody's."""
    return _share.get()
