"""What all clients of a process share: a clock, a queue, counts.

A frame is stamped as soon as it was read and checked when there is nothing to read: so
one client's check is no part of another one's lag. One timer serves all clients.
"""

import asyncio
import heapq
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from itertools import count
from random import Random
from typing import Any

from loadtest.client_mix import Kind
from loadtest.judge.rows import RowReader
from loadtest.judge.tallies import CrowdTick, total
from loadtest.results import PROMPT, ClientTally

STEP_S = 0.01
"""Whatever is due happens within so long."""

SLICE_S = 0.002
"""Frames are checked for so long before the event loop may read further ones."""

PATIENCE_S = 0.25
"""Frames wait so long at most for a moment when there is nothing to read."""


Hear = Callable[[bytes | None, float], None]
"""Takes what a client received, and when, ms; None: its connection has ended."""


class ClientLoop:
    """One event loop's clients and what they have seen so far.

    ``tally`` gives the counts of a kind in the second under way. Nothing is counted
    or checked any more once it ``is_frozen``.
    """

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.rows = RowReader()
        self.newest_window = 0
        self.connected: Counter[str] = Counter()
        self.merged_at: Counter[int] = Counter()
        """How often a prompt client got the window of an offset merged."""
        self._second = int(time.time())
        self._seconds: dict[int, dict[Kind, ClientTally]] = {}
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._queue: deque[tuple[Hear, bytes | None, float]] = deque()
        self.forget()
        self._received_s = 0.0
        self._is_checking = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        self._loop.call_later(STEP_S, self._step)
        self.errors: list[BaseException] = []

    def forget(self) -> None:
        """Drop everything that was counted or is due: the members are others."""
        self._due.clear()
        self._queue.clear()
        self._now: dict[Kind, ClientTally] = {}
        self._seconds = {self._second: self._now}
        # What all kinds have seen before this second, and what was told of it.
        self._past = self._told = ClientTally()
        self._lags_ms = array("f")
        self.merged_at.clear()
        self.rows.said.clear()
        self.is_frozen = False

    def tally(self, kind: Kind) -> ClientTally:
        """Return the counts of a kind in this second."""
        tally = self._now.get(kind)
        if tally is None:
            tally = self._now[kind] = ClientTally()
        return tally

    def put(self, hear: Hear, payload: bytes | None) -> None:
        """Queue what a client has just received; None: its connection has ended."""
        self._received_s = time.time()
        self._queue.append((hear, payload, self._received_s * 1e3))

    def note_update(self, kind: Kind, offset: int, merged: int, lag_ms: float) -> None:
        """Note that a client got an update that stands for so many windows."""
        if kind in PROMPT:
            self._lags_ms.append(lag_ms)
            if merged > 1:
                self.merged_at.update(range(offset - merged + 1, offset + 1))

    def later(self, after_s: float, act: Callable[[], None]) -> None:
        due_s = self._loop.time() + after_s
        heapq.heappush(self._due, (due_s, next(self._numbers), act))

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a task whose failure ends the process's work, seen by its parent."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._end_task)

    def freeze(self) -> None:
        """Check everything that was received, and take no more."""
        while self._queue:
            hear, payload, at_ms = self._queue.popleft()
            hear(payload, at_ms)
        self.is_frozen = True

    def tick(self) -> CrowdTick:
        """Return what is new since the last time."""
        so_far = total([self._past, *self._now.values()])
        seen, self._told = so_far.since(self._told), so_far
        lags_ms, self._lags_ms = self._lags_ms, array("f")
        return CrowdTick(Counter(self.connected), seen, lags_ms)

    def between(self, from_ms: float, to_ms: float) -> dict[Kind, ClientTally]:
        """Return the counts by kind of the seconds that begin within the bounds."""
        counts: dict[Kind, ClientTally] = {}
        for second, tallies in self._seconds.items():
            if from_ms <= second * 1e3 + 1e3 and second * 1e3 < to_ms:
                for kind, tally in tallies.items():
                    counts.setdefault(kind, ClientTally()).add(tally)
        return counts

    def _step(self) -> None:
        self._loop.call_later(STEP_S, self._step)
        second = int(time.time())
        if second > self._second:
            self._past = total([self._past, *self._now.values()])
            self._second = second
            self._now = self._seconds.setdefault(second, {})
        now_s = self._loop.time()
        while self._due and self._due[0][0] <= now_s:
            heapq.heappop(self._due)[2]()
        if self._queue and not self._is_checking:
            now_s = time.time()
            oldest_s = self._queue[0][2] / 1e3
            if now_s - self._received_s > STEP_S or now_s - oldest_s > PATIENCE_S:
                self._is_checking = True
                self._check()

    def _check(self) -> None:
        """Check what waits, slice by slice; what comes meanwhile is stamped between."""
        end_s = time.perf_counter() + SLICE_S
        queue = self._queue
        while queue:
            hear, payload, at_ms = queue.popleft()
            hear(payload, at_ms)
            if time.perf_counter() >= end_s:
                self._loop.call_soon(self._check)
                return
        self._is_checking = False

    def _end_task(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)
