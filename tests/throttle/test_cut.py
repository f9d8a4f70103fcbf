"""Where a window ends and when it may be cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.log import Head, Tail
from throttle.cut import (
    Cut,
    advance,
    next_end,
    origin,
    wait_ms,
    window_ends,
    window_time_ms,
)

W = 2_000
times = st.integers(0, 4_000_000_000_000)


def tail(clock_ms: int, *positions: int) -> Tail:
    """Make the log's end before a boundary, its counts unknown."""
    partitions = tuple(range(len(positions)))
    return Tail(clock_ms, partitions, positions, (None,) * len(positions))


def test_an_offset_keeps_its_cut_and_its_key_order() -> None:
    """Spark compares offsets as text: the same cut is always the same text."""
    cut = Cut(4_000, (7, 0, 9), (5, None, 0))
    text = json.dumps(cut.to_offset())
    assert text == (
        '{"end_ms": 4000, "p0": 7, "p1": 0, "p2": 9, "n0": 5, "n1": -1, "n2": 0}'
    )
    assert Cut.from_offset(json.loads(text)) == cut


@given(
    times,
    st.lists(
        st.tuples(st.integers(0, 2**63 - 1), st.none() | st.integers(0, 2**53)),
        max_size=70,
    ),
)
def test_any_cut_survives_its_offset(
    end_ms: int, ends: list[tuple[int, int | None]]
) -> None:
    """What is stored beside the windows is where the job goes on, to the digit."""
    cut = Cut(end_ms, tuple(p for p, _ in ends), tuple(n for _, n in ends))
    assert Cut.from_offset(json.loads(json.dumps(cut.to_offset()))) == cut


def test_a_new_job_on_an_empty_log_starts_with_the_current_window() -> None:
    """The very first start waits for the end of the window it is in."""
    assert origin(Head(None, (0, 1), (0, 0), (0, 0)), 5_999, W) == Cut(
        4_000, (0, 0), (0, 0)
    )


def test_a_new_job_starts_with_the_window_of_the_oldest_entry() -> None:
    """What is in the log already is published; what was dropped is not counted."""
    assert origin(Head(3_100, (0,), (0,), (17,)), 9_000, W) == Cut(2_000, (0,), (17,))


def test_an_entry_from_the_future_does_not_move_the_start() -> None:
    """A log whose server's clock was set back starts at the clock."""
    assert origin(Head(99_000, (0,), (0,), (0,)), 9_000, W) == Cut(8_000, (0,), (0,))


@pytest.mark.parametrize(
    ("clock", "wait"), [(4_000, 2_000), (5_999, 1), (6_000, 0), (70_000, 0)]
)
def test_waiting_ends_at_the_boundary(clock: int, wait: int) -> None:
    """The next cut can be made when the clock reaches its window's end."""
    assert wait_ms(4_000, clock, W) == wait


@pytest.mark.parametrize(
    ("clock", "end"),
    [(4_000, 6_000), (5_999, 6_000), (6_000, 6_000), (7_999, 6_000), (8_000, 8_000)],
)
def test_the_next_end_is_the_newest_boundary_passed(clock: int, end: int) -> None:
    """A window that is not over is never part of a batch."""
    assert next_end(4_000, clock, W, 30) == end


def test_a_backlog_is_cut_in_bounded_batches() -> None:
    """An outage of a day does not make a batch of a day."""
    assert next_end(0, 86_400_000, W, 30) == 60_000


def test_no_cut_before_the_clock_has_passed_the_boundary() -> None:
    """A trade could still be appended to a window that is not over."""
    previous = Cut(4_000, (1, 1), (1, 1))
    assert advance(previous, 6_000, tail(5_999, 5, 6)) is None


def test_a_cut_takes_the_last_positions_of_the_window_and_the_logs_counts() -> None:
    """At the boundary the cut is final."""
    previous = Cut(4_000, (1, 1), (1, 1))
    made = advance(previous, 6_000, Tail(6_000, (0, 1), (5, 6), (30, None)))
    assert made == Cut(6_000, (5, 6), (30, None))


def test_a_quiet_partition_keeps_its_position() -> None:
    """A partition without entries, or trimmed ones, never goes back."""
    made = advance(Cut(4_000, (3, 9), (1, 1)), 6_000, tail(6_001, 0, 4))
    assert made == Cut(6_000, (3, 9), (None, None))


def test_a_straggler_falls_into_the_window_after_the_cut() -> None:
    """An entry stamped before a cut it appeared behind is not lost."""
    assert window_time_ms(3_999, 4_000, 8_000) == 4_000
    assert window_time_ms(4_001, 4_000, 8_000) == 4_001


def test_every_window_between_two_cuts_is_named() -> None:
    """Quiet windows are published too."""
    assert list(window_ends(4_000, 10_000, W)) == [6_000, 8_000, 10_000]
    assert list(window_ends(4_000, 4_000, W)) == []


@given(previous=times.map(lambda t: t // W * W), clock=times, most=st.integers(1, 50))
def test_batches_follow_each_other_without_a_gap(
    previous: int, clock: int, most: int
) -> None:
    """Whatever the clock says, a batch starts where the last one ended."""
    end = next_end(previous, clock, W, most)
    assert end % W == 0
    assert previous < end <= previous + most * W
    made = advance(Cut(previous, (0,), (0,)), end, tail(clock, 1))
    assert (made is not None) == (clock >= end)
    if wait_ms(previous, clock, W) == 0:
        assert made is not None
