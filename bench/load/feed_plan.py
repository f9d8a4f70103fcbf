"""PURE: what a load test feeds: a simulated market or tapes, and how fast."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, takewhile
from math import inf, isfinite
from pathlib import Path
from typing import TypeAlias

from ingest.event import Event, Refusals
from ingest.profile import Profile
from ingest.replay import BETWEEN_PASSES_US, ReplayOptions, replay
from ingest.simulator import Simulator
from ingest.spoil import Spoil
from ingest.tape import read_tape

Schedule: TypeAlias = Callable[[float], int]
"""How many events are due by a time, in seconds since the feed's start."""

_SLOT_US = 10_000


@dataclass(frozen=True)
class FeedPlan:
    """What is fed. Raises ValueError, which names field, value and rule."""

    profile: Profile | None = None
    """The rate over time. None lets tapes keep their own times; a simulated market
    has to have one.
    """

    tapes: tuple[Path, ...] = ()
    """Recorded tapes, all played at the same time; none means a simulated market."""

    speed: float = 1.0
    """Times the tapes' own pace, without a profile."""

    loop: int = 1
    """How often each tape is played, 0 for ever."""

    max_gap_s: float | None = None
    """Longest silence of a tape that is kept, without a profile; None keeps all."""

    issues: int = 2_879
    """Of the simulated market."""

    seed: int = 1

    disorder: float | None = None
    """Share of trades that come late; None is 2 % of a simulated market, 0 of tapes."""

    repeats: float | None = None
    """Share of trades that come again; None is 1 % of a simulated market, 0 of tapes.
    Of tapes, repeats and malformed trades come on top of the profile.
    """

    malformed: float = 0.0
    """Share of trades that break a rule."""

    seconds: float | None = None
    """The feed ends after so long, if not before."""

    def __post_init__(self) -> None:
        """Check the options, those of the market or the replay included."""
        if self.seconds is not None and not (
            isfinite(self.seconds) and self.seconds > 0
        ):
            raise ValueError(f"seconds {self.seconds}: must be above 0")
        if not self.tapes:
            if self.profile is None:
                raise ValueError("profile None: a simulated market needs one")
            self._check_market()
            self.market()
            return
        self._replay_options()
        self._spoil()

    @property
    def words(self) -> str:
        """What is fed, for people: ``simulated market, 2,879 issues, 900/s``."""
        if self.tapes:
            source = ", ".join(f"tape {path.name}" for path in self.tapes)
        else:
            source = f"simulated market, {self.issues:,} issues"
        pace = f"{self.speed:g} x its own pace" if self.profile is None else ""
        if self.profile is not None:
            pace = self.profile.words
        shares = self._spoil() if self.tapes else self.market()
        spoiled = [
            f"{getattr(shares, name):.3g} {name}"
            for name in ("disorder", "repeats", "malformed")
            if getattr(shares, name)
        ]
        return ", ".join([source, pace, *spoiled])

    def market(self) -> Simulator:
        """Return the simulated market."""
        own = Simulator(issues=self.issues)
        return Simulator(
            seed=self.seed,
            issues=self.issues,
            seconds=self.seconds,
            disorder=own.disorder if self.disorder is None else self.disorder,
            repeats=own.repeats if self.repeats is None else self.repeats,
            malformed=self.malformed,
            profile=self.profile,
        )

    def isins(self) -> tuple[str, ...]:
        """Return all issues, the most traded first; reads tapes whole.

        Raises TapeError.
        """
        if not self.tapes:
            return tuple(issue.isin for issue in self.market().listing())
        trades: Counter[str] = Counter()
        for path in self.tapes:
            trades.update(trade.isin for trade in read_tape(path, Refusals()))
        return tuple(isin for isin, _ in trades.most_common())

    def prepare(self, refusals: Refusals) -> Callable[[int], Iterator[Event]]:
        """Return what yields the events, given the feed's start in us since 1970.

        What takes time is done here. Raises TapeError for a tape that is missing.
        """
        if not self.tapes:
            return self.market().prepare()
        for path in self.tapes:
            next(read_tape(path, Refusals()))
        return partial(self._replayed, refusals=refusals)

    def schedule(self) -> Schedule:
        """Return how many events are due by when, whatever became of them.

        Tapes at their own pace are read once. Late events count as if they were on
        time, and repeats on top of a tape as if they came with it. Raises TapeError.
        """
        factor = self._spoil().factor if self.tapes else 1.0
        limit_s = self.seconds or inf
        counted: list[Callable[[float], float]]
        if self.profile is not None:
            counted = [self.profile.trades]
        else:
            counted = [self._count(path) for path in self.tapes]

        def due(at_s: float) -> int:
            total = sum(trades(min(at_s, limit_s)) for trades in counted)
            # A sum of fractions may end just short of the trade it stands for.
            return int(total * factor + 1e-6)

        return due

    def _count(self, path: Path) -> Callable[[float], float]:
        """Return how many trades of one tape are due by when, at its own pace."""
        options = replace(self._replay_options(), path=path, beside=(), loop=1)
        counts: list[int] = []
        last_us = 0
        for event in self._in_time(replay(options, 0, Refusals())):
            last_us = event.due_us
            slot = last_us // _SLOT_US
            counts.extend([0] * (slot + 1 - len(counts)))
            counts[slot] += 1
        sums = list(accumulate(counts, initial=0))
        return partial(_due_by, sums, last_us + BETWEEN_PASSES_US, self.loop or inf)

    def _replayed(self, start_us: int, refusals: Refusals) -> Iterator[Event]:
        events = replay(self._replay_options(), start_us, refusals)
        return self._spoil().spoil(self._in_time(events))

    def _in_time(self, events: Iterator[Event]) -> Iterator[Event]:
        ends_us = inf if self.seconds is None else self.seconds * 1e6
        return takewhile(lambda event: event.due_us < ends_us, events)

    def _replay_options(self) -> ReplayOptions:
        first, *others = self.tapes
        return ReplayOptions(
            first,
            speed=self.speed,
            loop=self.loop,
            max_gap_s=self.max_gap_s,
            profile=self.profile,
            beside=tuple(others),
        )

    def _spoil(self) -> Spoil:
        return Spoil(
            self.disorder or 0.0, self.repeats or 0.0, self.malformed, self.seed
        )

    def _check_market(self) -> None:
        for name, usual in (("speed", 1.0), ("loop", 1), ("max_gap_s", None)):
            if getattr(self, name) != usual:
                raise ValueError(f"{name} {getattr(self, name)}: is for tapes alone")


def _due_by(sums: Sequence[int], period_us: int, passes: float, at_s: float) -> float:
    whole, into_us = divmod(max(0.0, at_s) * 1e6, period_us)
    if whole >= passes:
        return passes * sums[-1]
    return whole * sums[-1] + sums[min(int(into_us) // _SLOT_US, len(sums) - 1)]
