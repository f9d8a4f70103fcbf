"""Trades of any kind, in any order, played to jobs that die now and then."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

import redis
from hypothesis import HealthCheck
from hypothesis import strategies as st

from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.tradelog.redis_log_reader import find_log
from tests.ingest.strategies import updates
from throttle.audit.log_entries import RedisLogEntries
from throttle.audit.published import InstrumentTables, PublishedHistory
from throttle.audit.recompute import WindowRule
from throttle.audit.verify import Verification
from throttle.contract.ledger import Books
from throttle.contract.snapshot import Row
from throttle.testing.driver import (
    CRASH_POINTS,
    CrashPoint,
    PublishedWindow,
    ThrottleDriver,
)
from throttle.window.series_rows import NO_SERIES, SeriesRules

W = 2_000
ISINS = "KR7005930003", "KR7000660001", "KR7035420009"
LONG = "999999999999999999.999999999999999999"
numbers = st.one_of(
    st.integers(1, 30).map(str),
    st.sampled_from(["0.000000000000000001", "10.50", "10.5", "7.123456789", LONG]),
)


class Step(NamedTuple):
    """A trade, the time from the one before, and what comes after it."""

    after_ms: int
    isin: str
    price: str
    size: str
    late_ms: int
    seq: int
    partition: int
    is_turned: bool
    crash: CrashPoint | None
    updates: str | None


steps = st.builds(
    Step,
    st.sampled_from([0, 1, 300, 1_999, 2_000, 5_000]),
    st.sampled_from(ISINS),
    numbers,
    numbers,
    st.sampled_from([0, 0, 0, 1, 400, 2_500, 9_000]),
    st.integers(0, 2),
    st.integers(0, 3),
    st.booleans(),
    st.one_of(st.none(), st.none(), st.sampled_from(CRASH_POINTS)),
    st.none() | updates,
)
tapes = st.lists(steps, min_size=1, max_size=25)
is_one_server = [HealthCheck.function_scoped_fixture]


def append_trade(driver: ThrottleDriver, step: Step, at_ms: int, number: int) -> None:
    """Append the trade of a step at a moment."""
    driver.trade(
        step.isin,
        step.price,
        at_ms=at_ms,
        time_ms=at_ms - step.late_ms,
        seq=step.seq,
        size=step.size,
        partition=step.partition,
        **({} if step.updates is None else {"updates": step.updates}),
    )


def play(
    tape: Iterable[Any],
    drivers: list[ThrottleDriver],
    begin_ms: int = 0,
    append: Callable[[ThrottleDriver, Any, int, int], None] = append_trade,
) -> None:
    """Append what steps say; jobs take turns to publish, and die now and then.

    ``append`` is given a step, its moment and its number.
    """
    at_ms = ended_ms = begin_ms
    for number, step in enumerate(tape):
        at_ms += step.after_ms
        append(drivers[0], step, at_ms, number)
        if step.is_turned:
            driver = drivers[number % len(drivers)]
            can_crash = len(drivers) == 1 and at_ms // W > ended_ms // W
            driver.turn_clock(at_ms, crash_at=step.crash if can_crash else None)
            ended_ms = at_ms
    for driver in drivers:
        driver.turn_clock(at_ms + 2 * W)
        assert driver.ledger().problems() == []


def check_audit(
    client: redis.Redis, books: Books, series: SeriesRules = NO_SERIES
) -> None:
    """Check that windows computed again, and their books, are the published ones."""
    log, past = find_log(client, "tt"), PublishedHistory(client, "tt")
    ledger = past.ledger("throttle")
    assert log is not None
    assert ledger is not None
    verification = Verification(
        past.batches("throttle"),
        RedisLogEntries(client, "tt", log),
        WindowRule(W, 5_000, series=series, since=ledger.since),
        table_at=InstrumentTables(RedisInstrumentStore(client, "tt")).at,
    )
    windows, before = past.windows(), past.versions_before()
    report = verification.run(windows, before, past.oldest_offset)
    assert [*report.problems, *map(str, report.differences)] == []
    assert (report.equal, report.undecided) == (report.compared, 0)
    assert report.books == replace(books, unknown_instrument=0)


def rows_of(windows: Iterable[PublishedWindow]) -> list[Row]:
    """Return the rows of windows, or of updates, in their order."""
    return list(chain.from_iterable(window.rows.values() for window in windows))


@contextmanager
def two_jobs(redis_url: str, **settings: Any) -> Iterator[list[ThrottleDriver]]:
    """Run two jobs on one log; each has half of its partitions."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(
                ThrottleDriver(
                    redis_url=redis_url,
                    job=part.replace(",", "-"),
                    only_partitions=part,
                    **settings,
                )
            )
            for part in ("0,1", "2,3")
        ]
