"""Where a feed gets what it appends: a schedule of events, or what has just arrived."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Condition
from typing import NamedTuple, Protocol

from ingest.sources.event import Event

CHUNK = 5_000
"""Most entries of one append."""

TICK_S = 0.01
"""What falls due within a tick is appended together."""

WAITING_BYTES = 8 * 2**20
"""Most bytes of entries that have arrived and wait to be appended."""

ENTRY_OVERHEAD_BYTES = 200
"""What an entry takes beside its payload, about: its objects, its key."""

Entries = Sequence[tuple[str, bytes]]
"""Pairs of an ISIN, which picks the partition, and a payload."""


class Taken(NamedTuple):
    """What is to be appended together, at most ``CHUNK`` entries.

    ``due_us`` is when the first was due, in microseconds since the feed's start.
    """

    due_us: float
    entries: list[tuple[str, bytes]]


class Supply(Protocol):
    """What a feed appends, piece by piece."""

    @property
    def is_over(self) -> bool:
        """Whether nothing is left, and nothing will come."""

    @property
    def is_cut_short(self) -> bool:
        """Whether ``stop`` was what ended it."""

    @property
    def unsent(self) -> int:
        """Entries that have come and were not taken yet."""

    def take(self, now_us: float) -> Taken | None:
        """Return what is due now, None for nothing. ``now_us`` is since the start."""

    def wait_s(self, now_us: float) -> float:
        """Return how long nothing will be due, ``TICK_S`` if nobody knows."""

    def stop(self) -> None:
        """Take in nothing more; what has come can still be taken."""


class Schedule:
    """Events that are due at times of their own; what is not due yet can be dropped."""

    unsent = 0

    def __init__(self, events: Iterator[Event]) -> None:
        """Ask for the first event. Raises what ``events`` raises."""
        self._events = events
        self._head = next(events, None)
        self._error: Exception | None = None
        self._is_stopped = False

    @property
    def is_over(self) -> bool:
        return self._is_stopped or not self.is_cut_short

    @property
    def is_cut_short(self) -> bool:
        return self._head is not None or self._error is not None

    def take(self, now_us: float) -> Taken | None:
        """Return what is due. Raises what the events raise once all before is taken."""
        if self._error is not None:
            raise self._error
        head = self._head
        if head is None or head.due_us > now_us:
            return None
        first_us = head.due_us
        entries: list[tuple[str, bytes]] = []
        while head is not None and head.due_us <= now_us and len(entries) < CHUNK:
            entries.append((head.key, head.payload))
            head = self._next()
        self._head = head
        return Taken(first_us, entries)

    def _next(self) -> Event | None:
        try:
            return next(self._events, None)
        except Exception as error:  # noqa: BLE001 - it is raised after what was before it
            self._error = error
            return None

    def wait_s(self, now_us: float) -> float:
        return 0.0 if self._head is None else (self._head.due_us - now_us) / 1e6

    def stop(self) -> None:
        self._is_stopped = True


class Ended(RuntimeError):
    """The feed takes nothing more."""


class Arrivals:
    """Entries that another thread hands over as they come, in order.

    Bounded: while ``WAITING_BYTES`` wait, who hands over more waits, too: a pipe is not
    read while the log cannot follow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """``clock`` counts seconds from anywhere and never goes back."""
        self._clock = clock
        self._waiting: deque[tuple[float, Entries, int]] = deque()
        self._bytes = 0
        self._is_closed = self.is_cut_short = False
        self._error: BaseException | None = None
        self._changed = Condition()

    def put(self, entries: Entries) -> None:
        """Hand over entries; wait while too many bytes are waiting. Any thread.

        Raises Ended once the feed takes nothing more: none of them is taken then. To
        hand over nothing asks just that.
        """
        size = _size(entries)
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._has_room(size))
            self._add(entries, size)

    def offer(self, entries: Entries) -> bool:
        """Hand over entries unless there is no room now; tell whether there was.

        As ``put`` does, but never waits: for whoever must not stand still.
        """
        size = _size(entries)
        with self._changed:
            has_room = self._is_closed or self._has_room(size)
            if has_room:
                self._add(entries, size)
            return has_room

    def _has_room(self, size: int) -> bool:
        # What is larger than the bound alone goes through alone.
        return not self._bytes or self._bytes + size <= WAITING_BYTES

    def _add(self, entries: Entries, size: int) -> None:
        if self._is_closed:
            raise Ended("the feed has ended")
        if entries:
            self._waiting.append((self._clock(), entries, size))
            self._bytes += size

    def close(self, error: BaseException | None = None) -> None:
        """Say that nothing more comes; ``error`` is raised once all is taken."""
        with self._changed:
            if not self._is_closed:
                self._is_closed = True
                self._error = error
                self._changed.notify_all()

    def stop(self) -> None:
        with self._changed:
            if not self._is_closed:
                self.is_cut_short = True
                self.close()

    @property
    def unsent(self) -> int:
        with self._changed:
            return sum(len(entries) for _, entries, _ in self._waiting)

    @property
    def is_over(self) -> bool:
        with self._changed:
            return self._is_closed and not self._waiting and self._error is None

    def take(self, now_us: float) -> Taken | None:
        """Return what has arrived. Raises its error once all is taken."""
        with self._changed:
            if not self._waiting:
                if self._error is not None:
                    error, self._error = self._error, None
                    raise error
                return None
            arrived_s = self._waiting[0][0]
            entries: list[tuple[str, bytes]] = []
            while self._waiting and len(entries) < CHUNK:
                self._take_next(entries)
            self._changed.notify_all()
        return Taken(now_us - (self._clock() - arrived_s) * 1e6, entries)

    def _take_next(self, entries: list[tuple[str, bytes]]) -> None:
        arrived_s, given, size = self._waiting.popleft()
        room = CHUNK - len(entries)
        entries.extend(given[:room])
        if len(given) > room:
            rest = given[room:]
            left = size * len(rest) // len(given)
            self._waiting.appendleft((arrived_s, rest, left))
            size -= left
        self._bytes -= size

    def wait_s(self, _now_us: float) -> float:
        return TICK_S


def _size(entries: Entries) -> int:
    payloads = sum(len(payload) for _, payload in entries)
    return payloads + ENTRY_OVERHEAD_BYTES * len(entries)
