"""What a load test feeds: a simulated market or tapes, and how fast. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, takewhile
from math import inf
from pathlib import Path
from typing import TypeAlias

from ingest.sources.event import Event, Refusals
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import (
    BETWEEN_PASSES_US,
    Replay,
    ReplayOptions,
    least_pass_us,
    replay,
)
from ingest.sources.simulator import Simulator
from ingest.sources.tape import read_tape

Schedule: TypeAlias = Callable[[float], int]
"""How many events are due by a time, in seconds since the feed's start."""

_SLOT_US = 10_000


@dataclass(frozen=True)
class FeedPlan:
    """What is fed, and for how long."""

    source: Simulator | ReplayOptions
    """A simulated market with a profile, or how tapes are played."""

    tapes: tuple[Path, ...] = ()
    """Recorded tapes, all played at the same time."""

    seconds: float | None = None
    """The feed ends after so long, if not before."""

    def at_rate(self, rate: float) -> "FeedPlan":
        """Return the same at another rate, without an end."""
        source = self.source.model_copy(update={"profile": Profile.steady(rate)})
        return replace(self, source=source, seconds=None)

    @property
    def words(self) -> str:
        """What is fed, for people: ``simulated market, 2,879 issues, 900/s``."""
        source = self.source
        pace = source.profile.words if source.profile is not None else ""
        if isinstance(source, Simulator):
            broken = f", {source.malformed:.3g} malformed" if source.malformed else ""
            return f"simulated market, {source.issues:,} issues, {pace}{broken}"
        pace = pace or f"{source.speed:g} x its own pace"
        return f"{', '.join(f'tape {path.name}' for path in self.tapes)}, {pace}"

    def isins(self) -> tuple[str, ...]:
        """Return all issues, the most traded first; reads tapes whole.

        Raises TapeError.
        """
        if isinstance(self.source, Simulator):
            return tuple(issue.isin for issue in self.source.listing())
        trades: Counter[str] = Counter()
        for path in self.tapes:
            trades.update(trade.isin for trade in read_tape(path, Refusals()))
        return tuple(isin for isin, _ in trades.most_common())

    def prepare(self, refusals: Refusals) -> Callable[[int], Iterator[Event]]:
        """Return what yields the events, given the feed's start in us since 1970.

        What takes time is done here. Raises TapeError for a tape that is missing.
        """
        source = self.source
        if isinstance(source, Simulator):
            return source.model_copy(update={"seconds": self.seconds}).prepare()
        for path in self.tapes:
            next(read_tape(path, Refusals()))
        played = Replay(self.tapes, source)

        return lambda start_us: self._in_time(played.events(start_us, refusals))

    def schedule(self) -> Schedule:
        """Return how many events are due by when, whatever became of them.

        Tapes at their own pace are read once. Late events count as if they were on
        time. Raises TapeError.
        """
        source = self.source
        limit_s = self.seconds or inf
        counted: list[Callable[[float], float]]
        if source.profile is not None:
            counted = [source.profile.trades]
        elif isinstance(source, ReplayOptions):
            counted = [self._count(source, path) for path in self.tapes]
        else:
            counted = [lambda at_s: source.rate * at_s]

        def due(at_s: float) -> int:
            total = sum(trades(min(at_s, limit_s)) for trades in counted)
            # A sum of fractions may end just short of the trade it stands for.
            return int(total + 1e-6)

        return due

    def _count(self, played: ReplayOptions, path: Path) -> Callable[[float], float]:
        """Return how many trades of one tape are due by when, at its own pace."""
        options = played.model_copy(update={"loop": 1})
        counts: list[int] = []
        last_us = 0
        for event in self._in_time(replay([path], options, 0, Refusals())):
            last_us = event.due_us
            slot = last_us // _SLOT_US
            counts.extend([0] * (slot + 1 - len(counts)))
            counts[slot] += 1
        sums = list(accumulate(counts, initial=0))
        least_us = least_pass_us(last_us, sums[-1], played.speed)
        period_us = max(last_us + BETWEEN_PASSES_US, least_us)
        return partial(_due_by, sums, period_us, played.loop or inf)

    def _in_time(self, events: Iterator[Event]) -> Iterator[Event]:
        ends_us = inf if self.seconds is None else self.seconds * 1e6
        return takewhile(lambda event: event.due_us < ends_us, events)


def _due_by(sums: Sequence[int], period_us: int, passes: float, at_s: float) -> float:
    whole, into_us = divmod(max(0.0, at_s) * 1e6, period_us)
    if whole >= passes:
        return passes * sums[-1]
    return whole * sums[-1] + sums[min(int(into_us) // _SLOT_US, len(sums) - 1)]
