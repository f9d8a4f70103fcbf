"""Events drawn before they are due, while the feed has nothing else to do."""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice

from ingest.sources.event import Event

MOST = 50_000
"""Most events that are held: some 25 MB."""

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
        while len(self._drawn) < MOST and self._clock() <= until - _RESERVE_S:
            piece = list(islice(self._events, _AT_ONCE))
            self._drawn.extend(piece)
            if not piece:
                break
        self._sleep(max(0.0, until - self._clock()))
