"""Events drawn before they are due, while the feed has nothing else to do."""

from collections import deque
from collections.abc import Callable, Iterator

from ingest.event import Event

MOST = 50_000
"""Most events that are held: some 25 MB."""

SPAN_US = 1_000_000
"""How far apart the first and the last of them are due at most, but for a piece."""

_AT_ONCE = 50
# A piece may take longer than thought, and a sleeper wakes up late.
_RESERVE_S = 0.002


class Ahead:
    """An iterator over events that sleeps by drawing the next ones.

    A burst would take as long to make as to append: made beforehand, it is on time.
    """

    def __init__(
        self,
        events: Iterator[Event],
        clock: Callable[[], float],
        sleep: Callable[[float], None],
    ) -> None:
        self._events = events
        self._clock = clock
        self._sleep = sleep
        self._drawn: deque[Event] = deque()
        self._is_over = False

    def __iter__(self) -> Iterator[Event]:
        """Yield all events in order, those that were drawn before first."""
        drawn, events = self._drawn, self._events
        while True:
            while drawn:
                yield drawn.popleft()
            event = next(events, None)
            if event is None:
                return
            yield event

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds, having drawn what there was time for."""
        until = self._clock() + seconds
        while self._wants_more() and self._clock() <= until - _RESERVE_S:
            self._draw()
        self._sleep(max(0.0, until - self._clock()))

    def _wants_more(self) -> bool:
        drawn = self._drawn
        if self._is_over or len(drawn) >= MOST:
            return False
        return not drawn or drawn[-1].due_us - drawn[0].due_us < SPAN_US

    def _draw(self) -> None:
        for _ in range(_AT_ONCE):
            event = next(self._events, None)
            if event is None:
                self._is_over = True
                return
            self._drawn.append(event)
