"""What has to be looked at, and when: a hashed timing wheel. Pure.

Varghese and Lauck, "Hashed and hierarchical timing wheels" (1987), their scheme 6: a
timer costs as much as an entry of a list, however many there are.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


class TimerWheel(Generic[T]):
    """Gives back what was added when its time has come: never early, one tick late.

    Times are those of one monotonic clock, in seconds.
    """

    def __init__(self, tick_s: float, now_s: float) -> None:
        self._tick_s = tick_s
        self._ticks: defaultdict[int, list[T]] = defaultdict(list)
        self._next = int(now_s / tick_s)

    def add(self, timer: T, at_s: float) -> None:
        """Have ``due`` return it once, as soon as ``at_s`` is over."""
        self._ticks[max(int(at_s / self._tick_s) + 1, self._next)].append(timer)

    def due(self, now_s: float) -> Iterator[T]:
        """Yield everything whose time is over; what is added meanwhile comes later."""
        last = int(now_s / self._tick_s)
        first, self._next = self._next, last + 1
        for tick in range(first, last + 1):
            yield from self._ticks.pop(tick, ())
