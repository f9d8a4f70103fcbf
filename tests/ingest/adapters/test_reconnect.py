"""Waits grow, and end; what is limited stays within its limit."""

from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import Limit
from ingest.adapters.reconnect import (
    FIRST_WAIT_S,
    GOOD_AFTER_S,
    LIMITED_WAIT_S,
    LONGEST_LIMITED_WAIT_S,
    LONGEST_WAIT_S,
    Allowance,
    Backoff,
)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_waits_grow_up_to_a_bound(seed: int, failures: int) -> None:
    backoff = Backoff(Random(seed))
    for failure in range(failures):
        full_s = min(LONGEST_WAIT_S, FIRST_WAIT_S * 2**failure)
        assert full_s / 2 <= backoff.wait_s(0.0) <= full_s


def test_after_a_good_connection_waits_begin_anew() -> None:
    backoff = Backoff(Random(1))
    for _ in range(10):
        backoff.wait_s(1.0)
    assert backoff.wait_s(GOOD_AFTER_S) <= FIRST_WAIT_S


def test_a_limited_feed_waits_longer_and_as_long_as_it_is_asked() -> None:
    backoff = Backoff(Random(1))
    assert backoff.wait_s(0.0, is_rate_limit=True) >= LIMITED_WAIT_S / 2
    assert backoff.wait_s(0.0, is_rate_limit=True, asked_s=90) == 90
    longest = backoff.wait_s(0.0, is_rate_limit=True, asked_s=1e9)
    assert longest == LONGEST_LIMITED_WAIT_S


@given(
    st.integers(1, 5),
    st.floats(0.1, 10),
    st.lists(st.floats(0, 3), min_size=1, max_size=40),
)
def test_no_more_than_allowed_within_any_span(
    count: int, within_s: float, pauses: list[float]
) -> None:
    allowance = Allowance(Limit(count, within_s))
    now_s, turns = 0.0, []
    for pause_s in pauses:
        now_s += pause_s
        turns.append(now_s + allowance.take_turn(now_s))
    assert all(later >= earlier - 1e-6 for earlier, later in pairwise(turns))
    for first, beyond in zip(turns, turns[count:], strict=False):
        assert beyond - first >= within_s - 1e-6
