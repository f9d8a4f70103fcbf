"""What Redis says of the analytics queries: read as written, or called a fault."""

from dataclasses import replace

import orjson

from gateway.health.jobs import (
    BEHIND_AFTER_MS,
    QueryState,
    decode_query,
)
from throttle.contract.cut import Cut

CUT = Cut(60_500, (4, 5), (4, 5))
PROGRESS = {b"cut": orjson.dumps(CUT.to_offset()), b"clock": b"60000"}
LEDGER = {
    b"since": orjson.dumps(Cut(0, (0, 0), (0, 0)).to_offset()),
    b"upto": orjson.dumps(CUT.to_offset()),
    b"batches": b"3",
    b"0:read": b"5",
    b"0:counted": b"4",
    b"0:too_late": b"1",
    b"1:read": b"2",
    b"1:refused:bad_price": b"2",
    b"1:missed": b"7",
}
STATE = {b"rows": b"12", b"commit_ms": b"85", b"every_ms": b"2000", b"x": b"many"}
LEASE = b"17 host:4711:abc"


def make_query(product: str = "moves") -> QueryState:
    """Return a query of a product, which need not be one that we know."""
    query = decode_query(product, LEASE, PROGRESS, LEDGER, STATE)
    assert query is not None
    return query


def test_a_query_is_read_as_the_job_wrote_it() -> None:
    """Books of all partitions are added up; what is no number is left out."""
    query = make_query()
    assert (query.owner, query.cut, query.window_ms) == (
        *("host:4711:abc", CUT),
        60_000,
    )
    total = query.total
    assert (total.read, total.counted, total.too_late, total.missed) == (7, 4, 1, 7)
    assert total.refused == {"bad_price": 2}
    assert query.figures == {"rows": 12, "commit_ms": 85, "every_ms": 2_000}
    assert query.problems == []


def test_a_product_that_was_never_made_is_no_query() -> None:
    """Even if somebody holds the lease."""
    assert decode_query("bars", LEASE, {}, {}, STATE) is None


def test_what_the_job_would_not_have_written_is_a_fault() -> None:
    """Of this query alone: everything else is shown."""
    for progress, ledger in [
        ({b"clock": b"1"}, {}),
        ({**PROGRESS, b"cut": b"rubbish"}, {}),
        ({**PROGRESS, b"clock": b"noon"}, {}),
        (PROGRESS, {**LEDGER, b"0:unheard": b"1"}),
        (PROGRESS, {**LEDGER, b"0:read": b"x"}),
        (PROGRESS, {b"since": b"{}"}),
    ]:
        query = decode_query("bars", None, progress, ledger, {})
        assert query is not None
        [problem] = query.problems
        assert problem.startswith("analytics of bars: ")
        assert query.total.read == 0


def test_books_that_do_not_balance_are_a_problem() -> None:
    """By the sentence of the books."""
    query = decode_query("bars", LEASE, PROGRESS, {**LEDGER, b"0:read": b"6"}, STATE)
    assert query is not None
    assert query.problems == [
        "partition 0: 6 trades were read, 1 are not accounted for"
    ]


def test_a_query_is_behind_after_a_minute_and_three_batches() -> None:
    """One that nobody runs is dead, one that was told to stop is neither."""
    query = make_query()
    allowed_ms = CUT.end_ms + BEHIND_AFTER_MS + 3 * 2_000
    assert not query.is_behind(allowed_ms)
    assert query.is_behind(allowed_ms + 1)
    unknown = replace(query, figures={})
    assert not unknown.is_behind(CUT.end_ms + BEHIND_AFTER_MS + 30_000)
    assert not query.is_dead()
    dead = replace(query, owner=None)
    assert dead.is_dead()
    assert not dead.is_behind(allowed_ms + 1)
    stopped = replace(dead, figures={"stopped": 1})
    assert not stopped.is_dead()
    assert not replace(stopped, owner="x").is_behind(allowed_ms + 1)
