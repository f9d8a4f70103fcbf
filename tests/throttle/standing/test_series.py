"""Series of instruments: each is what its trades alone would have been."""

import json
from functools import partial
from typing import Any, NamedTuple

import pytest
import redis
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.series import parse_series
from tests.examples import many
from tests.ingest.strategies import updates
from tests.published import stored_days
from tests.throttle.testing.tapes import ISINS, W, check_audit, is_one_server, play
from throttle.contract.snapshot import Row
from throttle.testing.driver import CRASH_POINTS, CrashPoint, ThrottleDriver
from throttle.window.series_rows import find_series

pytestmark = pytest.mark.redis

SERIES = "KRX,NXT,regular,KRX-regular"
ISIN = ISINS[0]


class Step(NamedTuple):
    """A trade or a cancel, the time from the one before, and what comes after it."""

    after_ms: int
    price: int
    size: int
    late_ms: int
    venue: str | None
    session: str | None
    updates: str | None
    cancels: int | None
    corrects: int | None
    is_turned: bool
    crash: CrashPoint | None


steps = st.builds(
    Step,
    st.sampled_from([0, 1, 300, 1_999, 2_000, 5_000]),
    st.integers(1, 9),
    st.integers(1, 9),
    st.sampled_from([0, 0, 0, 400, 2_500]),
    st.sampled_from(["KRX", "NXT", None]),
    st.sampled_from(["regular", "after", None]),
    st.none() | st.none() | updates,
    st.none() | st.none() | st.integers(0, 9),
    st.none() | st.none() | st.integers(0, 9),
    st.booleans(),
    st.none() | st.none() | st.sampled_from(CRASH_POINTS),
)
tapes = st.lists(steps, min_size=2, max_size=30)


def fields_of(step: Step) -> dict[str, Any]:
    """Return the further fields of a step's trade."""
    names = "venue", "session", "updates", "corrects"
    every = {name: getattr(step, name) for name in names}
    return {name: value for name, value in every.items() if value is not None}


def append(
    driver: ThrottleDriver, step: Step, at_ms: int, number: int, series: str = ""
) -> None:
    """Append an entry, or what a series has of it.

    A trade has the number of its step: one is taken back in a series if it is there.
    """
    of_it, fields = parse_series(series), fields_of(step)
    if step.cancels is not None:
        driver.cancel(ISIN, step.cancels, at_ms=at_ms)
    elif not of_it or of_it[0].has(fields):
        driver.trade(
            ISIN,
            str(step.price),
            at_ms=at_ms,
            time_ms=at_ms - step.late_ms,
            seq=number,
            size=str(step.size),
            **fields,
        )
    elif step.corrects is not None:
        # What a correction of another series takes back is taken back of each.
        driver.cancel(ISIN, step.corrects, at_ms=at_ms)


def items_of(driver: ThrottleDriver, key: str) -> list[tuple[int, Any, bytes]]:
    """Return what is published of a key: window, item without its key, and sums."""
    rows = ((w.end_ms, w.rows[key]) for w in driver.windows() if key in w.rows)
    return [(end_ms, said(row, key), row.sums) for end_ms, row in rows]


def said(row: Row, key: str) -> Any:
    """Return an item without its key."""
    item = json.loads(row.body, parse_float=str)
    assert item.pop("isin") == key
    return item


@settings(max_examples=many(25), suppress_health_check=is_one_server)
@given(tape=tapes, name=st.sampled_from(SERIES.split(",")))
def test_a_series_is_what_its_trades_alone_would_have_been(
    tape: list[Step], name: str, redis_url: str, client: redis.Redis
) -> None:
    """Rows, days, late and taken back; the account of the job finds the same."""
    client.flushall()
    with ThrottleDriver(redis_url=redis_url, series=SERIES) as driver:
        play(tape, [driver], append=append)
        of_series = items_of(driver, f"{ISIN}@{name}")
        check_audit(client, driver.ledger().total, find_series(SERIES, ""))
    days = stored_days(client)
    client.flushall()
    with ThrottleDriver(redis_url=redis_url) as driver:
        play(tape, [driver], append=partial(append, series=name))
        assert items_of(driver, ISIN) == of_series
    assert days.get(f"{ISIN}@{name}") == stored_days(client).get(ISIN)


def test_a_correction_of_another_series_leaves_what_stands(
    redis_url: str, client: redis.Redis
) -> None:
    """Also where the trade that it corrects lies far back, among others."""
    client.flushall()
    regular = {"venue": "KRX", "session": "regular"}
    with ThrottleDriver(redis_url=redis_url, series=SERIES) as driver:
        driver.trade(ISIN, "2", at_ms=100, seq=0, **regular)
        driver.trade(ISIN, "1", at_ms=300, seq=4, **regular)
        driver.turn_clock(30 * W)
        after: dict[str, Any] = {"venue": "NXT", "session": "after", "corrects": 4}
        driver.trade(ISIN, "9", at_ms=30 * W + 100, seq=7, **after)
        driver.turn_clock(31 * W)
        shown = driver.windows()[-1].prices()
    assert shown == {
        ISIN: "9",
        f"{ISIN}@NXT": "9",
        f"{ISIN}@KRX": "2",
        f"{ISIN}@regular": "2",
        f"{ISIN}@KRX-regular": "2",
    }
