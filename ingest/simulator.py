"""PURE: a seeded market that trades for ever, event by event."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, isfinite
from operator import itemgetter
from random import Random
from typing import Literal

from ingest.event import Event
from ingest.malformed import break_trade
from ingest.market import Book, Issue, create_issues, popularity

SLOT_US = 100_000
BURST_EVERY_SLOTS = 20
BURST_FACTOR = 4.0
"""In every 2 s, one slot of 100 ms has four times the trades of the mean."""

MAX_DELAY_US = 500_000
"""How long after its exchange stamp a late trade comes at most."""

_REPEAT_AFTER_S = 0.25
_SIZES = 4_096

# Intensity over a day, (share of the session, relative rate): the opening, a quiet
# midday, the closing.
_DAY = (
    (0.0, 1.75),
    (0.05, 1.5),
    (0.15, 1.15),
    (0.45, 0.7),
    (0.65, 0.7),
    (0.9, 1.05),
    (0.97, 1.3),
    (1.0, 1.6),
)
_DAY_AREA = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairwise(_DAY))
_DAY_SHARES = [share for share, _ in _DAY]


def day_factor(share: float) -> float:
    """Return the rate at a share (0 to 1) of the session, relative to its mean."""
    right = min(bisect_right(_DAY_SHARES, share), len(_DAY) - 1)
    (from_share, from_rate), (to_share, to_rate) = _DAY[right - 1], _DAY[right]
    along = (share - from_share) / (to_share - from_share)
    return (from_rate + along * (to_rate - from_rate)) / _DAY_AREA


@dataclass(frozen=True, slots=True)
class Simulator:
    """A market; the same options and start give the same bytes, whenever asked.

    Raises ValueError for an option outside its bounds.
    """

    seed: int = 1

    rate: float = 750.0
    """Mean number of events a second over every 2 s, or over a ``day``'s session;
    0.1 to 1,000,000.
    """

    issues: int = 2_879
    """Number of issues, 1 to 20,000."""

    shape: Literal["flat", "day"] = "flat"
    """``flat``: the mean rate all the time. ``day``: a busy opening (1.8 times the
    mean), a quiet midday, a busy closing, all within ``session_s``, then again. Both
    have sub-second bursts.
    """

    session_s: float = 600.0
    """Length of a ``day`` in seconds, 1 to 86,400."""

    seconds: float | None = None
    """How long the market trades, above 0; None means for ever."""

    disorder: float = 0.02
    """Share of events, 0 to 1, that come 1 to 500 ms after their exchange stamp."""

    repeats: float = 0.01
    """Share of events, 0 to 0.5, that repeat a trade of about a quarter second ago
    byte for byte, as a feed does after a reconnect. No trade comes more than twice.
    """

    malformed: float = 0.0
    """Share of events, 0 to 1, that break a rule of the trade."""

    def __post_init__(self) -> None:
        """Check the bounds."""
        _check("rate", self.rate, 0.1, 1_000_000)
        _check("issues", self.issues, 1, 20_000)
        _check("session_s", self.session_s, 1, 86_400)
        _check("disorder", self.disorder, 0, 1)
        _check("repeats", self.repeats, 0, 0.5)
        _check("malformed", self.malformed, 0, 1)
        together = self.disorder + self.repeats + self.malformed
        _check("disorder + repeats + malformed", together, 0, 1)
        if self.seconds is not None:
            _check("seconds", self.seconds, 0.001, 10**9)
        if self.shape not in ("flat", "day"):
            raise ValueError(f"shape {self.shape!r}: must be flat or day")

    def listing(self) -> tuple[Issue, ...]:
        """Return the market's issues, the most traded first."""
        return create_issues(Random(f"{self.seed}/listing"), self.issues)

    def events(self, start_us: int) -> Iterator[Event]:
        """Yield the events of a market that opens at ``start_us`` (since 1970 UTC).

        A trade's exchange time is ``start_us`` plus its event's ``due_us``, less its
        delay when it is late or a repeat. An issue's seq rises by one with its
        exchange time, and its cumulative volume and value with its seq. An issue's
        price stays on the price grid and within the day's limits.
        """
        return _Session(self, start_us).events()

    def factor(self, elapsed_us: int) -> float:
        """Return the rate at a time since the start, relative to the mean."""
        if self.shape == "flat":
            return 1.0
        return day_factor(elapsed_us / 1e6 % self.session_s / self.session_s)


def _check(name: str, value: float, lowest: float, highest: float) -> None:
    if not (isfinite(value) and lowest <= value <= highest):
        raise ValueError(f"{name} {value}: must be from {lowest:,} to {highest:,}")


class _Session:
    """One run of a market: everything that changes while it trades."""

    def __init__(self, options: Simulator, start_us: int) -> None:
        self._options = options
        self._start_us = start_us
        self._rng = rng = Random(f"{options.seed}/session")
        self._books = [Book(issue) for issue in options.listing()]
        self._weights = list(accumulate(popularity(options.issues)))
        self._sizes = [max(1, int(rng.lognormvariate(3.0, 1.4))) for _ in range(_SIZES)]
        self._late: list[Event] = []
        self._recent: deque[Event] = deque(
            maxlen=min(4_096, ceil(options.rate * _REPEAT_AFTER_S))
        )

    def events(self) -> Iterator[Event]:
        """Yield slot after slot; what is late joins the slot it falls due in."""
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
            yield from self._slot(from_us, int(length_us), whole)
            owed -= whole
            slot += 1
        yield from sorted(self._late, key=itemgetter(0))

    def _ends_us(self) -> float:
        seconds = self._options.seconds
        return float("inf") if seconds is None else round(seconds * 1e6)

    def _slot(self, from_us: int, length_us: int, count: int) -> list[Event]:
        """Return the events due in one slot, in order."""
        rng, options = self._rng, self._options
        out: list[Event] = []
        repeats = options.malformed + options.repeats
        late = repeats + options.disorder
        books = rng.choices(self._books, cum_weights=self._weights, k=count)
        stamps = sorted(int(rng.random() * length_us) for _ in range(count))
        for book, stamp in zip(books, stamps, strict=True):
            due_us = from_us + stamp
            luck = rng.random()
            if luck < options.malformed:
                payload = book.peek(self._start_us + due_us)
                out.append(Event(due_us, book.isin, break_trade(rng, payload)))
            elif luck < repeats and self._recent:
                out.append(self._recent.popleft()._replace(due_us=due_us))
            else:
                payload = book.trade(
                    self._start_us + due_us, rng.getrandbits(20), self._sizes
                )
                event = Event(due_us, book.isin, payload)
                if repeats <= luck < late:
                    delay_us = rng.randrange(1_000, MAX_DELAY_US + 1)
                    self._late.append(event._replace(due_us=due_us + delay_us))
                else:
                    out.append(event)
                    self._recent.append(event)
        return self._with_late(out, from_us + length_us)

    def _with_late(self, out: list[Event], before_us: int) -> list[Event]:
        due = [event for event in self._late if event.due_us < before_us]
        if due:
            self._late = [event for event in self._late if event.due_us >= before_us]
            out = sorted(out + due, key=itemgetter(0))
        return out
