"""What all rows say together is what was traded: any trades, any order, any crash."""

from collections.abc import Iterable
from decimal import Decimal
from itertools import chain

import pytest
import redis
from hypothesis import given, settings

from ingest.instrument_table.instrument_entry import InstrumentEntry
from tests.examples import many
from tests.logged import logged_in_redis
from tests.oracle import (
    EXACT,
    Sums,
    add_up,
    expected_windows,
    sums_of_trades,
)
from tests.published import item_of, published_windows
from tests.throttle.testing.tapes import (
    ISINS,
    Step,
    check_audit,
    is_one_server,
    play,
    rows_of,
    tapes,
)
from throttle.contract.snapshot import Row
from throttle.testing.driver import PublishedWindow, ThrottleDriver

pytestmark = pytest.mark.redis
LISTED = [
    InstrumentEntry(ISINS[0], market="KOSPI", sector="Chips", prev_close="10"),
    InstrumentEntry(ISINS[1], market="KOSDAQ", sector="Chips"),
]


def sums_of(rows: Iterable[Row]) -> dict[str, Sums]:
    """Return what rows add up to, by ISIN."""
    return add_up((row.isin, item_of(row).sums) for row in rows)


def check_never_back(rows: Iterable[Row]) -> None:
    """Check that no row is older than the one before of its instrument."""
    newest: dict[str, bytes] = {}
    for row in rows:
        assert row.version >= newest.get(row.isin, b"")
        newest[row.isin] = row.version


def check_groups(window: PublishedWindow) -> None:
    """Check that the markets, and the sectors, of a window add up to its rows."""
    sums = [item_of(row).sums for row in window.rows.values()]
    for kind in ("group:market:", "group:sector:"):
        groups = [g for key, g in window.groups.items() if key.startswith(kind)]
        assert sum(int(group["trades"]) for group in groups) == sum(
            s.trades for s in sums
        )
        for name in ("volume", "value"):
            of_groups = exact_sum(group[name] for group in groups)
            assert of_groups == exact_sum(getattr(one, name) for one in sums)


def exact_sum(numbers: Iterable[str | Decimal]) -> Decimal:
    """Return a sum in which nothing is rounded."""
    total = Decimal(0)
    for number in numbers:
        total = EXACT.add(total, Decimal(number))
    return total


@settings(max_examples=many(80), suppress_health_check=is_one_server)
@given(tape=tapes)
def test_rows_add_up_to_the_trades_and_no_price_goes_back(
    tape: list[Step], redis_url: str, client: redis.Redis
) -> None:
    """Late trades, backlogs and crashes included: in every window, and in all."""
    client.flushall()
    with ThrottleDriver(redis_url=redis_url, instruments=LISTED) as driver:
        play(tape, [driver])
        windows, updates = driver.windows(), driver.updates()
        books = driver.ledger().total
        check_audit(client, books)
    trades, published = logged_in_redis(client), published_windows(client)
    expected = expected_windows(trades, max(published))
    for end_ms, items in expected.windows.items():
        assert published[end_ms] == items
    became = expected.books
    assert {name: getattr(books, name) for name in became} == became
    for messages in (windows, updates):
        parts = sums_of(rows_of(messages)).items(), expected.unshown.items()
        assert add_up(chain(*parts)) == sums_of_trades(trades)
        check_never_back(rows_of(messages))
        for window in messages:
            check_groups(window)
