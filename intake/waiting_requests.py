"""Requests that wait for the log: a feed's supply that tells when all is there."""

import asyncio
from collections import deque
from dataclasses import dataclass
from threading import Lock

from ingest.feed.supply import CHUNK, TICK_S, Ended, Taken


@dataclass(slots=True)
class _Waiting:
    entries: list[tuple[str, bytes]]
    loop: asyncio.AbstractEventLoop
    done: "asyncio.Future[None]"


class Requests:
    """Entries of requests, appended in the order in which they came.

    ``put`` is called in an event loop, all else by the feed's thread. What the feed has
    taken is acknowledged as a whole, by ``acknowledged``.
    """

    def __init__(self) -> None:
        self._waiting: deque[_Waiting] = deque()
        self._taken: list[_Waiting] = []
        self._is_stopped = False
        self._lock = Lock()

    def put(self, entries: list[tuple[str, bytes]]) -> "asyncio.Future[None]":
        """Have at most ``CHUNK`` entries appended; the future ends when they are.

        Raises Ended.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_stopped:
                raise Ended("the intake is stopping")
            waiting = _Waiting(entries, loop, loop.create_future())
            self._waiting.append(waiting)
        return waiting.done

    @property
    def unsent(self) -> int:
        """Entries that were not taken yet."""
        with self._lock:
            return sum(len(waiting.entries) for waiting in self._waiting)

    @property
    def is_over(self) -> bool:
        """Whether it was told to stop, and all that came before was taken."""
        with self._lock:
            return self._is_stopped and not self._waiting

    @property
    def is_cut_short(self) -> bool:
        """Whether it was told to stop: there is no other end."""
        return self._is_stopped

    def take(self, now_us: float) -> Taken | None:
        """Return what has come, at most ``CHUNK`` entries, requests as a whole."""
        entries: list[tuple[str, bytes]] = []
        with self._lock:
            while self._waiting:
                if entries and len(entries) + len(self._waiting[0].entries) > CHUNK:
                    break
                waiting = self._waiting.popleft()
                self._taken.append(waiting)
                entries += waiting.entries
        return Taken(now_us, entries) if entries else None

    def acknowledged(self, _lag_s: float = 0.0) -> None:
        """Say that what was taken last is in the log."""
        taken, self._taken = self._taken, []
        for waiting in taken:
            _tell(waiting, None)

    def wait_s(self, _now_us: float) -> float:
        """Return a tick: nobody knows when a request comes."""
        return TICK_S

    def stop(self) -> None:
        with self._lock:
            self._is_stopped = True

    def give_up(self) -> None:
        """Say of all that is not acknowledged that nobody knows what became of it."""
        self.stop()
        with self._lock:
            left = [*self._taken, *self._waiting]
            self._taken, self._waiting = [], deque()
        for waiting in left:
            _tell(waiting, Ended("the intake has stopped"))


def _tell(waiting: _Waiting, error: Ended | None) -> None:
    # A loop that has been closed has nobody left to tell.
    if not waiting.loop.is_closed():
        waiting.loop.call_soon_threadsafe(_settle, waiting.done, error)


def _settle(done: "asyncio.Future[None]", error: Ended | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
        # Whoever asked may have gone.
        done.exception()
