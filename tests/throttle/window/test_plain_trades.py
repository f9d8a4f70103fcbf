"""Plain trades by the compiled package: the rows are those of Python, to the byte."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.tradelog.contract import Chunk
from ingest.tradelog.speedups import find_speedups
from tests.examples import many
from tests.speedups import NOT_BUILT
from tests.throttle.payloads import MAX_AHEAD_MS, NOW_MS, chunks, make_chunk
from tests.throttle.window.speedups_fuzz import (
    HARD,
    SIMULATED,
    check_any_buffers,
    check_both_ways,
    random_chunk,
)
from throttle.window.plain_trades import plain_trades

pytestmark = pytest.mark.skipif(not find_speedups(), reason=NOT_BUILT)


@settings(max_examples=many(300))
@given(chunks)
def test_both_ways_make_the_same_rows(chunk: Chunk) -> None:
    """Whatever stands in a log."""
    check_both_ways(chunk)


@settings(max_examples=many(60))
@given(st.integers(0, 2**32))
def test_damaged_entries_are_judged_the_same(seed: int) -> None:
    """A byte more, a byte less, another one: of what feeds write, and of extremes."""
    random = Random(seed)
    check_both_ways(random_chunk(random, 200))
    for _ in range(100):
        check_any_buffers(random)


def test_what_a_feed_writes_is_plain() -> None:
    """Else the compiled pass would be for nothing."""
    chunk = make_chunk([(NOW_MS + 10**6, payload) for payload in SIMULATED])
    plain = plain_trades(chunk, MAX_AHEAD_MS, 65_536)
    assert plain is not None
    assert plain[0].true_count == len(SIMULATED)
    check_both_ways(chunk)


def test_what_is_hard_is_the_same_undamaged() -> None:
    """The largest amounts, the smallest, fields with rules of their own."""
    check_both_ways(make_chunk([(NOW_MS, payload) for payload in HARD]))
    check_both_ways(make_chunk([]))


def test_an_entry_over_the_limit_is_not_plain() -> None:
    """Its size alone refuses it."""
    payload = SIMULATED[0]
    for most, expected in ((len(payload), 1), (len(payload) - 1, 0)):
        chunk = make_chunk([(NOW_MS, payload)])
        plain = plain_trades(chunk, MAX_AHEAD_MS, most)
        assert plain is not None
        assert plain[0].true_count == expected
