"""Append events when they are due; never lose one, never skip one."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from threading import Event as Flag

import structlog
from redis.exceptions import RedisError

from ingest.feed.supply import CHUNK, TICK_S, Entries, Schedule, Supply, Taken
from ingest.sources.event import Event, Refusals
from ingest.tradelog.contract import LogAway, LogWriter
from tickthrottle_client.log_v1 import BACKOFF_S
from tickthrottle_client.redis_faults import is_passing

_NAP_S = 0.1
_PROGRESS_EVERY_S = 0.2
_RATE_OVER_S = 2.0

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FeedProgress:
    """How a feed is doing, for display."""

    elapsed_s: float
    acknowledged: int
    rate: float
    """Acknowledged a second, over the last two seconds."""
    lag_s: float
    """Age, since it was due, of the oldest event that was just acknowledged or still
    waits for it; 0 when nothing was due.
    """
    refused: int
    retried: int
    dropped_at_cap: int


@dataclass(frozen=True, slots=True)
class FeedReport:
    """What became of a feed."""

    acknowledged: int
    """Events that the log's server has confirmed."""
    refused: Mapping[str, int]
    """What never came into the log, by reason: no trades, or none the log can take."""
    refusals: tuple[str, ...]
    """The first few rows of them in words, each with its line number."""
    retried: int
    """Events of appends that failed and were tried again, unless ``stop`` came first.
    Waiting on for an append that is under way is no second try.
    """
    seconds: float
    max_lag_s: float
    """Longest time from an event's due time to its acknowledgement."""
    dropped_at_cap: int
    stopped: bool
    """Whether ``stop`` ended the feed before its last event."""
    unsent: int = 0
    """Entries that had arrived and were never appended: ``stop`` came while the log was
    away. They are lost, unless their source has them still.
    """
    in_doubt: int = 0
    """How many entries, at most, may be in the log beyond the acknowledged ones."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Rows that were left out on purpose, by the condition that they met."""
    unknown_conditions: Mapping[str, int] = field(default_factory=dict)
    """Sale conditions that no table has, of trades that were appended."""


def run_feed(
    events: Iterable[Event] | Supply,
    writer: LogWriter,
    *,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    stop: Flag,
    on_progress: Callable[[FeedProgress], None],
    refusals: Refusals | None = None,
    on_append: Callable[[float], None] | None = None,
    keep: Callable[[Entries], None] | None = None,
) -> FeedReport:
    """Append every event when it is due and report when all are acknowledged.

    ``clock`` counts seconds from anywhere and never goes back; the feed starts with
    its first reading. A feed that is behind catches up and drops nothing. An append
    that the server cannot take is tried again, whole, or waited for if it is under way:
    every event is appended at least once and in order. ``stop`` ends the feed within
    0.1 s plus the append under way, a second at most if the server is silent; what has
    arrived by then is appended first, if the log takes it. ``refusals`` is the tally of
    the events' source. After each append ``on_append`` is told the seconds from its
    first event's due time until all of it was acknowledged, and ``keep`` what was
    appended. Raises what ``events`` raises, and what ``writer`` raises beside
    ``LogAway`` and what ``is_passing``.
    """
    feed = _Feed(
        *(writer, clock, sleep, stop, on_progress, refusals or Refusals(), on_append),
        keep,
    )
    feed.started = feed.shown = clock()
    return feed.run(Schedule(iter(events)) if isinstance(events, Iterable) else events)


@dataclass(slots=True)
class _Feed:
    writer: LogWriter
    clock: Callable[[], float]
    sleep: Callable[[float], None]
    stop: Flag
    on_progress: Callable[[FeedProgress], None]
    refusals: Refusals
    on_append: Callable[[float], None] | None
    keep: Callable[[Entries], None] | None
    started: float = 0.0
    shown: float = 0.0
    acknowledged: int = 0
    retried: int = 0
    lag_s: float = 0.0
    max_lag_s: float = 0.0
    samples: deque[tuple[float, int]] = field(default_factory=deque)

    def run(self, supply: Supply) -> FeedReport:
        while True:
            if self.stop.is_set():
                supply.stop()
            if supply.is_over:
                return self.report(stopped=supply.is_cut_short)
            taken = supply.take(self.elapsed_s() * 1e6)
            self.lag_s = 0.0
            if taken is not None and not self.append(taken):
                supply.stop()
                return self.report(stopped=True, unsent=supply.unsent)
            self.show()
            if not supply.is_over and (taken is None or len(taken.entries) < CHUNK):
                # Never so long that stop waits.
                wait_s = supply.wait_s(self.elapsed_s() * 1e6)
                self.sleep(min(max(TICK_S, wait_s), _NAP_S))

    def append(self, taken: Taken) -> bool:
        """Append until all is acknowledged; False when ``stop`` was set before."""
        entries = taken.entries
        due_s = taken.due_us / 1e6
        for attempt in count():
            try:
                self.acknowledged += self.writer.append(entries)
            except LogAway as error:
                # The writer has the entries: the same list again only waits on.
                wait_s = TICK_S
                if attempt == 0:
                    log.warning("the log is silent, waiting", error=str(error))
            except RedisError as error:
                if not is_passing(error):
                    raise
                self.retried += len(entries)
                wait_s = BACKOFF_S[min(attempt, len(BACKOFF_S) - 1)]
                if attempt == 0:
                    log.warning("append failed, trying again", error=str(error))
            else:
                if self.keep is not None:
                    self.keep(entries)
                self.measure_lag(due_s)
                if self.on_append is not None:
                    self.on_append(self.lag_s)
                if attempt:
                    log.info("append succeeded", attempts=attempt + 1)
                return True
            if not self.back_off(wait_s, due_s):
                break
        self.writer.abandon()
        # A part of what was given up may have been acknowledged before.
        self.acknowledged = sum(tally.acknowledged for tally in self.writer.tallies)
        return False

    def back_off(self, wait_s: float, due_s: float) -> bool:
        until = self.clock() + wait_s
        while not self.stop.is_set():
            left_s = until - self.clock()
            if left_s <= 0:
                return True
            self.measure_lag(due_s)
            self.show()
            self.sleep(min(left_s, _NAP_S))
        return False

    def elapsed_s(self) -> float:
        return self.clock() - self.started

    def measure_lag(self, due_s: float) -> None:
        self.lag_s = max(0.0, self.elapsed_s() - due_s)
        self.max_lag_s = max(self.max_lag_s, self.lag_s)

    def show(self) -> None:
        now = self.clock()
        if now - self.shown >= _PROGRESS_EVERY_S:
            self.shown = now
            self.on_progress(self.progress(now))

    def progress(self, now: float) -> FeedProgress:
        samples = self.samples
        if not samples:
            samples.append((self.started, 0))
        samples.append((now, self.acknowledged))
        while len(samples) > 2 and samples[1][0] <= now - _RATE_OVER_S:
            samples.popleft()
        since, before = samples[0]
        return FeedProgress(
            elapsed_s=now - self.started,
            acknowledged=self.acknowledged,
            rate=(self.acknowledged - before) / max(now - since, 1e-9),
            lag_s=self.lag_s,
            refused=self.refusals.total + sum(self.writer.refused.values()),
            retried=self.retried,
            dropped_at_cap=self.writer.dropped_at_cap,
        )

    def report(self, stopped: bool, unsent: int = 0) -> FeedReport:
        self.on_progress(self.progress(self.clock()))
        return FeedReport(
            acknowledged=self.acknowledged,
            refused=dict(self.refusals.by_reason() + Counter(self.writer.refused)),
            refusals=tuple(self.refusals.examples),
            retried=self.retried,
            seconds=self.elapsed_s(),
            max_lag_s=self.max_lag_s,
            dropped_at_cap=self.writer.dropped_at_cap,
            stopped=stopped,
            unsent=unsent,
            in_doubt=sum(tally.in_doubt for tally in self.writer.tallies),
            left_out=dict(self.refusals.left_out),
            unknown_conditions=dict(self.refusals.unknown_conditions),
        )
