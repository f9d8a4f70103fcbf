"""Where a window ends and when it may be cut."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.tradelog.contract import Head, Tail
from throttle.contract.cut import (
    NOWHERE,
    Cut,
    advance,
    between,
    may_be_cut,
    newest_cut,
    next_end,
    origin,
    wait_ms,
    window_end,
    window_ends,
    window_time_ms,
)

W = 2_000
times = st.integers(0, 4_000_000_000_000)


def tail(clock_ms: int, *positions: int) -> Tail:
    """Make the log's end before a boundary, its counts unknown."""
    partitions = tuple(range(len(positions)))
    return Tail(clock_ms, partitions, positions, (None,) * len(positions))


@given(
    times,
    st.dictionaries(
        st.integers(0, 99_999),
        st.tuples(st.integers(NOWHERE, 2**63 - 1), st.none() | st.integers(0, 2**53)),
        max_size=70,
    ),
)
def test_any_cut_survives_its_offset(
    end_ms: int, ends: dict[int, tuple[int, int | None]]
) -> None:
    """What is stored beside the windows is where the job goes on, to the digit."""
    partitions = tuple(sorted(ends))
    positions = tuple(ends[p][0] for p in partitions)
    counts = tuple(ends[p][1] for p in partitions)
    cut = Cut(end_ms, positions, counts, partitions)
    assert Cut.from_offset(json.loads(json.dumps(cut.to_offset()))) == cut


def test_a_cut_of_some_partitions_names_them_in_its_offset() -> None:
    """In order of their numbers, not of their text."""
    cut = Cut(4_000, (7, 8, 9), (5, None, 0), (2, 5, 10))
    text = json.dumps(cut.to_offset())
    assert text == (
        '{"end_ms": 4000, "p2": 7, "p5": 8, "p10": 9, "n2": 5, "n5": -1, "n10": 0}'
    )
    assert Cut.from_offset(json.loads(text)) == cut
    shuffled = dict(sorted(json.loads(text).items(), reverse=True))
    assert Cut.from_offset(shuffled) == cut


def test_a_partition_has_its_position_and_its_count() -> None:
    """By its number; one that is not in the cut has had nothing read of it."""
    cut = Cut(4_000, (7, 8), (5, None), (3, 9))
    assert [cut.position(p) for p in (3, 9)] == [7, 8]
    assert [cut.count(p) for p in (3, 9)] == [5, None]
    for other in (0, 1, 4):
        assert (cut.position(other), cut.count(other)) == (NOWHERE, 0)


def test_what_lies_between_two_cuts_is_a_range_per_partition() -> None:
    """A partition where there is nothing is left out, and so is one not asked for."""
    start = Cut(4_000, (7, 8, 5), (1, 1, 1))
    end = Cut(6_000, (7, 11, 6), (1, 4, 2))
    assert between(start, end, (0, 1, 2)) == {1: (8, 11), 2: (5, 6)}
    assert between(start, end, (0, 2)) == {2: (5, 6)}
    assert between(start, start, (0, 1, 2)) == {}


def test_a_partition_that_was_added_is_read_from_its_beginning() -> None:
    """Its first position is 0, where a log counts its entries."""
    start = Cut(4_000, (7,), (8,))
    made = advance(start, 6_000, Tail(6_000, (0, 1, 2), (9, 0, -1), (10, 1, 0)))
    assert made == Cut(6_000, (9, 0, NOWHERE), (10, 1, 0))
    assert between(start, made, made.partitions) == {0: (7, 9), 1: (NOWHERE, 0)}


def test_a_new_job_on_an_empty_log_starts_with_the_current_window() -> None:
    """The very first start waits for the end of the window it is in."""
    assert origin(Head(None, (0, 1), (0, 0), (0, 0)), 5_999, W) == Cut(
        4_000, (0, 0), (0, 0)
    )


def test_a_new_job_starts_with_the_window_of_the_oldest_entry() -> None:
    """What is in the log already is published; what was dropped is not counted."""
    assert origin(Head(3_100, (0,), (0,), (17,)), 9_000, W) == Cut(2_000, (0,), (17,))


def test_a_new_job_may_leave_out_the_past() -> None:
    """It starts at the end of the log before a boundary that has passed."""
    found = Tail(9_000, (4, 6), (30, -1), (31, None))
    assert newest_cut(found, 8_000) == Cut(8_000, (30, -1), (31, None), (4, 6))


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
    assert not may_be_cut(6_000, tail(5_999, 5, 6))
    assert may_be_cut(6_000, tail(6_000, 5, 6))


def test_a_cut_takes_the_last_positions_of_the_window_and_the_logs_counts() -> None:
    """At the boundary the cut is final."""
    previous = Cut(4_000, (1, 1), (1, 1))
    made = advance(previous, 6_000, Tail(6_000, (0, 1), (5, 6), (30, None)))
    assert made == Cut(6_000, (5, 6), (30, None))


def test_a_quiet_partition_keeps_its_position() -> None:
    """A partition without entries, or trimmed ones, never goes back."""
    made = advance(Cut(4_000, (3, 9), (1, 1)), 6_000, tail(6_001, 0, 4))
    assert made == Cut(6_000, (3, 9), (None, None))


def test_an_entry_stamped_past_its_cut_counts_just_before_it() -> None:
    """Only a log that lets its writers stamp can hold one; its window is over."""
    assert window_time_ms(7_999, 4_000, 8_000) == 7_999
    assert window_time_ms(8_000, 4_000, 8_000) == 7_999
    assert window_time_ms(9**15, 4_000, 8_000) == 7_999


@given(stamp=times, start=times, length=st.integers(1, 50 * W))
def test_every_stamp_counts_between_the_cuts(
    stamp: int, start: int, length: int
) -> None:
    """Whatever an entry says, it is in a window that is published with it."""
    counted = window_time_ms(stamp, start, start + length)
    assert start <= counted < start + length
    if start <= stamp < start + length:
        assert counted == stamp


@given(stamp=times, start=times.map(lambda t: t // W * W), windows=st.integers(1, 5))
def test_an_entry_is_in_one_of_the_windows_between_its_cuts(
    stamp: int, start: int, windows: int
) -> None:
    """In the one whose time it has, or else at the edge that is nearer."""
    end = start + windows * W
    window = window_end(stamp, start, end, W)
    assert window in window_ends(start, end, W)
    if start <= stamp < end:
        assert window - W <= stamp < window


@given(previous=times.map(lambda t: t // W * W), clock=times, most=st.integers(1, 50))
def test_batches_follow_each_other_without_a_gap(
    previous: int, clock: int, most: int
) -> None:
    """Whatever the clock says, a batch starts where the last one ended."""
    end = next_end(previous, clock, W, most)
    assert end % W == 0
    assert previous < end <= previous + most * W
    assert may_be_cut(end, tail(clock, 1)) == (clock >= end)
    if wait_ms(previous, clock, W) == 0:
        assert may_be_cut(end, tail(clock, 1))
