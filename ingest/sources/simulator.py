"""A seeded market that trades for ever, event by event. Pure."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from itertools import accumulate, pairwise
from math import ceil, inf
from random import Random
from typing import Literal, Self

from pydantic import Field, model_validator

from ingest.files.file_form import FrozenOptions
from ingest.sources.event import Event
from ingest.sources.faults import Share, break_trade
from ingest.sources.market import (
    Book,
    SimulatedInstrument,
    create_instruments,
    popularity,
)
from ingest.sources.rate_profile import Profile, ProfileOption

SLOT_US = 100_000
BURST_EVERY_SLOTS = 20
BURST_FACTOR = 4.0
"""In every 2 s, one slot of 100 ms has four times the trades of the mean."""

MAX_DELAY_US = 500_000
"""How long after its exchange stamp a late trade comes at most."""

_REPEAT_AFTER_S = 0.25
_SIZES = 4_096

_Slot = tuple[int, int, int]
"""When it begins and how long it is, in microseconds, and its number of trades."""

# Intensity over a day, (share of the session, relative rate): the opening, a quiet
# midday, the closing.
_DAY = (
    *((0.0, 1.75), (0.05, 1.5), (0.15, 1.15), (0.45, 0.7)),
    *((0.65, 0.7), (0.9, 1.05), (0.97, 1.3), (1.0, 1.6)),
)
_DAY_AREA = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(_DAY))
_DAY_SHARES = [share for share, _ in _DAY]


def day_factor(share: float) -> float:
    """Return the rate at a share (0 to 1) of the session, relative to its mean."""
    right = min(bisect_right(_DAY_SHARES, share), len(_DAY) - 1)
    (from_share, from_rate), (to_share, to_rate) = _DAY[right - 1], _DAY[right]
    along = (share - from_share) / (to_share - from_share)
    return (from_rate + along * (to_rate - from_rate)) / _DAY_AREA


class Simulator(FrozenOptions):
    """A market; the same options and start give the same bytes, whenever asked."""

    seed: int = 1
    """Same seed, same market."""

    rate: float = Field(750.0, ge=0.1, le=1_000_000)
    """Mean number of trades a second over every 2 s, or over a ``day``'s session."""

    instruments: int = Field(2_879, ge=1, le=20_000)
    """Number of instruments."""

    shape: Literal["flat", "day"] = "flat"
    """``flat``: the mean rate all the time. ``day``: a busy opening (1.8 times the
    mean), a quiet midday, a busy closing, all within the session, then again. Both
    have sub-second bursts.
    """

    session_s: float = Field(600.0, ge=1, le=86_400)
    """Length of a ``day`` in seconds."""

    seconds: float | None = Field(None, ge=0.001, le=1e9)
    """How long the market trades, in seconds; without it, until it is stopped."""

    disorder: Share = 0.02
    """Share of trades, 0 to 1, that come 1 to 500 ms after their exchange stamp."""

    repeats: float = Field(0.01, ge=0, le=0.5)
    """Share of trades, 0 to 0.5, that repeat one of about a quarter second ago byte
    for byte, as a feed does after a reconnect. No trade comes more than twice.
    """

    malformed: Share = 0.0
    """Share of trades, 0 to 1, that break a rule."""

    profile: ProfileOption | None = None
    """How the rate goes over time, in place of ``rate`` and ``shape`` and without
    their sub-second bursts, such as 900:60s,900..5000:60s or
    opening(900):600s,1700/100ms@30s; see docs/running.md. The market closes when the
    profile ends, or after ``seconds`` if that is earlier. Every 10 ms has its whole
    number of trades.
    """

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        shares = self.disorder + self.repeats + self.malformed
        if shares > 1:
            raise ValueError(
                f"disorder + repeats + malformed {shares:g}: must be at most 1"
            )
        if self.profile is not None and self.model_fields_set & {"rate", "shape"}:
            raise ValueError("profile: is in place of rate and shape")
        return self

    @property
    def total(self) -> float:
        """Number of trades until the market closes, infinite if it never does."""
        seconds = inf if self.seconds is None else self.seconds
        if self.profile is not None:
            return self.profile.trades(seconds)
        return self.rate * seconds

    def listing(self) -> tuple[SimulatedInstrument, ...]:
        """Return the market's instruments, the most traded first."""
        return create_instruments(f"{self.seed}/listing", self.instruments)

    def events(self, start_us: int) -> Iterator[Event]:
        """Yield the events of a market that opens at ``start_us`` (since 1970 UTC).

        A trade's exchange time is ``start_us`` plus its event's ``due_us``, less its
        delay when it is late or a repeat. An instrument's seq rises by one with its
        exchange time, and its cumulative volume and value with its seq. An instrument's
        price stays on the price grid and within the day's limits.
        """
        return self.prepare()(start_us)

    def prepare(self) -> Callable[[int], Iterator[Event]]:
        """Return what does as ``events``, once: what takes time is done here."""
        return _Session(self).events

    def factor(self, elapsed_us: int) -> float:
        """Return the rate at a time since the start, relative to the mean."""
        if self.shape == "flat":
            return 1.0
        return day_factor(elapsed_us / 1e6 % self.session_s / self.session_s)


class _Session:
    """One run of a market: everything that changes while it trades."""

    def __init__(self, options: Simulator) -> None:
        self._options = options
        self._rng = rng = Random(f"{options.seed}/session")
        self._books = [Book(instrument) for instrument in options.listing()]
        self._weights = list(accumulate(popularity(options.instruments)))
        self._sizes = [max(1, int(rng.lognormvariate(3.0, 1.4))) for _ in range(_SIZES)]
        # By due time, those of the same time in the order in which they were drawn.
        self._late: list[tuple[int, int, Event]] = []
        self._drawn = 0
        peak = options.profile.peak if options.profile else options.rate
        self._recent: deque[Event] = deque(maxlen=_recent_at(peak))

    def events(self, start_us: int) -> Iterator[Event]:
        """Yield slot after slot; what is late joins the slot it falls due in."""
        profile = self._options.profile
        slots = self._own_slots() if profile is None else self._profile_slots(profile)
        for from_us, length_us, whole in slots:
            yield from self._slot(start_us, from_us, length_us, whole)
        while self._late:
            yield heappop(self._late)[2]

    def _own_slots(self) -> Iterator[_Slot]:
        ends_us = self._ends_us()
        owed = 0.0
        quiet = (BURST_EVERY_SLOTS - BURST_FACTOR) / (BURST_EVERY_SLOTS - 1)
        slot = burst = 0
        while slot * SLOT_US < ends_us:
            if slot % BURST_EVERY_SLOTS == 0:
                burst = slot + self._rng.randrange(BURST_EVERY_SLOTS)
            from_us = slot * SLOT_US
            length_us = min(SLOT_US, ends_us - from_us)
            owed += (
                self._options.rate
                * (length_us / 1e6)
                * self._options.factor(from_us + SLOT_US // 2)
                * (BURST_FACTOR if slot == burst else quiet)
            )
            # A sum of fractions may end just short of the whole trade it stands for.
            whole = int(owed + 1e-6)
            yield from_us, int(length_us), whole
            owed -= whole
            slot += 1

    def _profile_slots(self, profile: Profile) -> Iterator[_Slot]:
        for slot in profile.slots(self._ends_us()):
            keep = _recent_at(profile.rate(slot[0] / 1e6))
            while len(self._recent) > keep:
                self._recent.popleft()
            yield slot

    def _ends_us(self) -> float:
        seconds = self._options.seconds
        return inf if seconds is None else round(seconds * 1e6)

    def _slot(
        self, start_us: int, from_us: int, length_us: int, whole: int
    ) -> Iterator[Event]:
        rng, options, late, recent = self._rng, self._options, self._late, self._recent
        sizes, random, getrandbits = self._sizes, rng.random, rng.getrandbits
        is_malformed = options.malformed
        is_repeat = options.malformed + options.repeats
        is_late = is_repeat + options.disorder
        books = rng.choices(self._books, cum_weights=self._weights, k=whole)
        stamps = sorted([int(random() * length_us) for _ in range(whole)])
        for book, stamp in zip(books, stamps, strict=True):
            due_us = from_us + stamp
            while late and late[0][0] < due_us:
                yield heappop(late)[2]
            luck = random()
            if luck >= is_late:
                payload = book.trade(start_us + due_us, getrandbits(20), sizes)
                event = Event(due_us, book.isin, payload)
                recent.append(event)
                yield event
            elif luck < is_malformed:
                payload = book.peek(start_us + due_us)
                yield Event(due_us, book.isin, break_trade(rng, payload))
            elif luck < is_repeat and recent:
                yield recent.popleft()._replace(due_us=due_us)
            else:
                payload = book.trade(start_us + due_us, getrandbits(20), sizes)
                event = Event(due_us, book.isin, payload)
                if luck < is_repeat:
                    recent.append(event)
                    yield event
                    continue
                due_us += rng.randrange(1_000, MAX_DELAY_US + 1)
                self._drawn += 1
                heappush(late, (due_us, self._drawn, event._replace(due_us=due_us)))


def _recent_at(rate: float) -> int:
    return min(4_096, ceil(rate * _REPEAT_AFTER_S))
