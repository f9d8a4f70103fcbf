"""Counts and moments that workers keep together."""

from dataclasses import replace
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from gateway.admission.limits import Admission, Budgets, TokenBucket
from gateway.admission.shared_figures import CELLS, cell_of, take_seat
from gateway.stream.counters import Counters, CounterTotals


def test_a_limit_holds_over_all_workers() -> None:
    """Each counts its own; what is compared is the sum."""
    first = take_seat(0, workers=2)
    one, other = (
        Admission(3, 2, seat.tally(seat.streams))
        for seat in (first, replace(first, worker=1))
    )
    assert [one.enter("a"), other.enter("a")] == [None, None]
    assert one.enter("a") == "2 connections an address are allowed"
    assert other.enter("b") is None
    assert one.enter("c") == "this gateway has 3 connections, it takes no more"
    other.leave("a")
    assert one.enter("c") is None
    assert (one.elsewhere, other.elsewhere) == (1, 2)


def test_cells_cannot_be_foreseen() -> None:
    """Nor are they outside of the table, whatever the address."""
    addresses = [f"10.0.{n >> 8}.{n & 255}" for n in range(1_000)] + ["", "\udc80"]
    cells = [cell_of(b"one", address) for address in addresses]
    assert all(0 <= cell < CELLS for cell in cells)
    assert cells != [cell_of(b"other", address) for address in addresses]
    assert len(set(cells)) > 950


@given(
    st.sampled_from([0.25, 1, 4, 128]),
    st.integers(1, 20),
    st.lists(st.integers(0, 3_000), max_size=60),
)
def test_a_budget_is_a_bucket(rate_per_s: float, burst: int, steps: list[int]) -> None:
    """Asked at the same moments, one number says what two would."""
    bucket = TokenBucket(rate_per_s, burst, 0.0)
    budgets = Budgets(rate_per_s, burst)
    for moment in accumulate(steps):
        # Of powers of two, sums are exact.
        now_s = moment / 1_024
        assert budgets.is_spent("a", now_s) == (bucket.wait_ms(now_s) > 0)
        assert budgets.take("a", now_s) == bucket.take(now_s)


def test_workers_share_a_budget() -> None:
    """What one gave is gone at the other."""
    seat = take_seat(0, workers=2)
    one, other = (Budgets(10, 2, seat.request_moments, seat.key) for _ in range(2))
    assert [one.take("a", 5.0), other.take("a", 5.0), one.take("a", 5.0)] == [0, 0, 100]
    assert other.is_spent("a", 5.05)
    assert not other.is_spent("a", 5.1)


def test_counters_are_added_up() -> None:
    """Of all workers; another one's as it stored them last."""
    first = take_seat(len(CounterTotals.NAMES), workers=2)
    mine, theirs = Counters(frames_sent=3), Counters(frames_sent=4, reloads=1)
    totals = CounterTotals(mine, first.counters, 0)
    others = CounterTotals(theirs, first.counters, 1)
    assert totals.read()["frames_sent"] == 3
    others.store()
    mine.frames_sent = 5
    assert (totals.read()["frames_sent"], totals.read()["reloads"]) == (9, 1)
