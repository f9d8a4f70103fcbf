"""PURE: a feed made worse: trades that come late, twice, or broken."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import count
from math import isfinite
from random import Random

from ingest.event import Event
from ingest.malformed import break_trade

MAX_DELAY_US = 500_000
"""How long after its due time a late event comes at most."""

REPEAT_AFTER_US = 250_000


@dataclass(frozen=True, slots=True)
class Spoil:
    """What is done to a feed's events; the same seed does the same.

    Every event that comes in goes out, too: repeats and broken copies come on top.
    Raises ValueError for a share outside its bounds.
    """

    disorder: float = 0.0
    """Share of events, 0 to 1, that come 1 to 500 ms late; their stamps stay."""

    repeats: float = 0.0
    """Share of events, 0 to 1, that come again byte for byte a quarter second later,
    as a feed does after a reconnect.
    """

    malformed: float = 0.0
    """Share of events, 0 to 1, after which comes a copy that breaks a rule."""

    seed: int = 1

    def __post_init__(self) -> None:
        """Check the bounds."""
        for name in ("disorder", "repeats", "malformed"):
            share = getattr(self, name)
            if not (isfinite(share) and 0 <= share <= 1):
                raise ValueError(f"{name} {share}: must be from 0 to 1")

    @property
    def factor(self) -> float:
        """How many events go out for each that comes in."""
        return 1 + self.repeats + self.malformed

    def spoil(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events, spoiled, in order of their due times, each when asked."""
        rng = Random(f"{self.seed}/spoil")
        # By due time, those of the same time in the order in which they were put in.
        held: list[tuple[int, int, Event]] = []
        numbers = count()

        def hold(event: Event, delay_us: int) -> None:
            due_us = event.due_us + delay_us
            heappush(held, (due_us, next(numbers), event._replace(due_us=due_us)))

        for event in events:
            while held and held[0][0] <= event.due_us:
                yield heappop(held)[2]
            if rng.random() < self.repeats:
                hold(event, REPEAT_AFTER_US)
            is_broken = rng.random() < self.malformed
            if rng.random() < self.disorder:
                hold(event, rng.randint(1_000, MAX_DELAY_US))
            else:
                yield event
            if is_broken:
                yield event._replace(payload=break_trade(rng, event.payload))
        while held:
            yield heappop(held)[2]
