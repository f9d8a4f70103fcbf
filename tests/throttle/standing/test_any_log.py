"""Trades that are taken back, in any order, with crashes: what stands is shown."""

import json
from collections import defaultdict
from decimal import Decimal
from functools import reduce
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chained import check_chain
from tests.examples import many
from tests.ingest.strategies import updates
from tests.logged import Logged, logged_in_redis
from tests.oracle import Sums
from tests.published import Day, item_of, read_day, stored_days
from tests.throttle.standing.standing_oracle import (
    Shown,
    StandingOracle,
    by_windows,
    go_through,
)
from tests.throttle.testing.tapes import (
    ISINS,
    W,
    check_audit,
    is_one_server,
    play,
    two_jobs,
)
from throttle.contract.snapshot import Row
from throttle.testing.driver import (
    CRASH_POINTS,
    START_MS,
    CrashPoint,
    PublishedWindow,
    ThrottleDriver,
)

pytestmark = pytest.mark.redis


class Step(NamedTuple):
    """An entry, the time from the one before, and what comes after it."""

    after_ms: int
    isin: str
    price: int
    size: int
    late_ms: int
    seq: int
    cancels: int | None
    corrects: int | None
    updates: str | None
    is_turned: bool
    crash: CrashPoint | None


numbers = st.integers(0, 4)
steps = st.builds(
    Step,
    st.sampled_from([0, 1, 300, 1_999, 2_000, 5_000]),
    st.sampled_from(ISINS[:2]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0, 0, 0, 1, 400, 2_500, 9_000]),
    numbers,
    st.none() | numbers,
    st.none() | st.none() | numbers,
    st.none() | st.none() | updates,
    st.booleans(),
    st.none() | st.none() | st.sampled_from(CRASH_POINTS),
)
tapes = st.lists(steps, min_size=2, max_size=30)


def append(driver: ThrottleDriver, step: Step, at_ms: int, number: int) -> None:
    """Append an entry at a moment."""
    if step.cancels is not None:
        driver.cancel(step.isin, step.cancels, at_ms=at_ms)
        return
    more: dict[str, Any] = {"corrects": step.corrects, "updates": step.updates}
    driver.trade(
        step.isin,
        str(step.price),
        at_ms=at_ms,
        time_ms=at_ms - step.late_ms,
        seq=step.seq,
        size=str(step.size),
        **{name: value for name, value in more.items() if value is not None},
    )


def shown_by(row: Row) -> Shown:
    """Read what a row shows."""
    item = item_of(row)
    return Shown(item.revision, item.order, item.price)


def of_day(day: Day) -> tuple[Sums, Decimal | None]:
    """Return what the oracle says of a day."""
    return day.sums, day.open


def expect(
    windows: list[PublishedWindow], updates: list[PublishedWindow], log: list[Logged]
) -> dict[str, StandingOracle]:
    """Compare everything that was published with the oracle, batch by batch."""
    ends = [window.end_ms for window in windows]
    assert ends == [*range(ends[0], ends[-1] + 1, W)]
    rows = {w.end_ms: {i: item_of(r) for i, r in w.rows.items()} for w in windows}
    begins = [ends[0] - W, *(update.end_ms for update in updates)]
    batches = [range(begin + W, end + 1, W) for begin, end in pairwise(begins)]
    placed = by_windows(log, lambda one: ((one.append_ms - START_MS) // W + 1) * W)
    oracles = {isin: StandingOracle() for isin in ISINS[:2]}
    upto = go_through(batches, placed, rows, oracles)
    for update, batch, end_ms in zip(updates, batches, upto, strict=True):
        assert update.end_ms == end_ms
        for isin in oracles.keys() & update.rows:
            assert shown_by(update.rows[isin]) == oracles[isin].shown
            of_it = (rows[end].get(isin) for end in batch)
            sums = reduce(Sums.plus, (one.sums for one in of_it if one is not None))
            assert item_of(update.rows[isin]).sums == sums
            assert of_day(read_day(update.rows[isin].day)) == oracles[isin].day()
    assert begins[-1] == ends[-1]
    return oracles


@settings(max_examples=many(120), suppress_health_check=is_one_server)
@given(tape=tapes)
def test_what_stands_is_shown(
    tape: list[Step], redis_url: str, client: redis.Redis
) -> None:
    """Rows, days and books; and the job's own account finds the same."""
    client.flushall()
    with ThrottleDriver(redis_url=redis_url, partitions=2) as driver:
        play(tape, [driver], append=append)
        windows, updates = driver.windows(), driver.updates()
        books = driver.ledger().total
    oracles = expect(windows, updates, logged_in_redis(client))
    assert books.taken_back == sum(one.taken_back for one in oracles.values())
    assert books.unknown_target == sum(one.unknown for one in oracles.values())
    cancels = sum(step.cancels is not None for step in tape)
    assert books.skipped.get("cancel", 0) == cancels
    days = {isin: of_day(day) for isin, day in stored_days(client).items()}
    assert days == {isin: oracles[isin].day() for isin in days}
    for isin in ISINS[:2]:
        shown = [shown_by(w.rows[isin]) for w in windows if isin in w.rows]
        assert all(before <= after for before, after in pairwise(shown))
    check_audit(client, books)
    check_chain(client)


@settings(max_examples=many(40), suppress_health_check=is_one_server)
@given(tape=tapes)
def test_of_two_jobs_each_takes_back_its_own(
    tape: list[Step], redis_url: str, client: redis.Redis
) -> None:
    """What has no instrument of the other one's is exact, whoever is behind."""
    client.flushall()
    with two_jobs(redis_url) as drivers:
        play(tape, drivers, append=append)
        updates = drivers[0].updates()
        books = [driver.ledger().total for driver in drivers]
    oracles = {isin: StandingOracle() for isin in ISINS[:2]}
    by_isin: dict[str, list[Logged]] = defaultdict(list)
    for one in sorted(logged_in_redis(client), key=lambda one: one[2:0:-1]):
        by_isin[json.loads(one.payload)["isin"]].append(one)
    for isin, oracle in oracles.items():
        oracle.take([by_isin[isin]])
    taken_back = sum(one.taken_back for one in oracles.values())
    assert sum(total.taken_back for total in books) == taken_back
    days = {isin: of_day(day) for isin, day in stored_days(client).items()}
    assert days == {isin: oracles[isin].day() for isin in days}
    for isin, day in days.items():
        newest = [update.rows[isin] for update in updates if isin in update.rows][-1:]
        assert [of_day(read_day(row.day)) for row in newest] in ([day], [])
