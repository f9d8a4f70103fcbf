"""What a load test feeds: a simulated market or tapes, and how fast. Pure."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from math import inf
from pathlib import Path

from ingest.sources.event import Event, Refusals
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import Replay, ReplayOptions
from ingest.sources.simulator import Simulator
from ingest.sources.tape import read_tape


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
        """What is fed, for people: ``simulated market, 2,879 instruments, 900/s``."""
        source = self.source
        pace = source.profile.words if source.profile is not None else ""
        if isinstance(source, Simulator):
            broken = f", {source.malformed:.3g} malformed" if source.malformed else ""
            return (
                f"simulated market, {source.instruments:,} instruments, {pace}{broken}"
            )
        pace = pace or f"{source.speed:g} x its own pace"
        return f"{', '.join(f'tape {path.name}' for path in self.tapes)}, {pace}"

    def isins(self) -> tuple[str, ...]:
        """Return all instruments, the most traded first; reads tapes whole.

        Raises TapeError.
        """
        if isinstance(self.source, Simulator):
            return tuple(instrument.isin for instrument in self.source.listing())
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

    def _in_time(self, events: Iterator[Event]) -> Iterator[Event]:
        ends_us = inf if self.seconds is None else self.seconds * 1e6
        return takewhile(lambda event: event.due_us < ends_us, events)
