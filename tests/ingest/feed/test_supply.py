"""What a feed appends: events when they are due, arrivals as they come, bounded."""

import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.feed.supply import (
    CHUNK,
    ENTRY_OVERHEAD_BYTES,
    TICK_S,
    WAITING_BYTES,
    Arrivals,
    Ended,
    Schedule,
)
from ingest.sources.event import Event


def entries(count: int, size: int = 10) -> list[tuple[str, bytes]]:
    """Return entries that differ."""
    return [(f"K{n}", b"%0*d" % (size, n)) for n in range(count)]


def test_a_schedule_gives_what_is_due_and_no_more() -> None:
    schedule = Schedule(iter([Event(0, "A", b"0"), Event(5, "B", b"1")]))

    assert schedule.take(0) == (0, [("A", b"0")])
    assert schedule.take(4) is None
    assert schedule.wait_s(4) == pytest.approx(1e-6)
    assert not schedule.is_over
    assert schedule.take(9) == (5, [("B", b"1")])
    assert schedule.is_over
    assert not schedule.is_cut_short


def test_a_schedule_that_breaks_off_gives_what_was_before() -> None:
    """Then it raises, unless it was stopped meanwhile."""

    def breaking_off() -> Iterator[Event]:
        yield Event(0, "A", b"0")
        yield Event(5, "B", b"1")
        raise ValueError("damaged")

    for is_stopped in (False, True):
        schedule = Schedule(breaking_off())
        assert schedule.take(9) == (0, [("A", b"0"), ("B", b"1")])
        assert not schedule.is_over
        if is_stopped:
            schedule.stop()
            assert schedule.is_over
            continue
        with pytest.raises(ValueError, match="damaged"):
            schedule.take(9)


def test_a_schedule_that_is_stopped_has_lost_nothing() -> None:
    schedule = Schedule(iter([Event(0, "A", b"0"), Event(5, "B", b"1")]))
    schedule.stop()

    assert schedule.is_over
    assert schedule.is_cut_short
    assert schedule.unsent == 0


@given(st.lists(st.integers(1, CHUNK * 2), max_size=8), st.data())
def test_arrivals_come_in_order_and_in_chunks(
    sizes: list[int], data: st.DataObject
) -> None:
    arrivals = Arrivals(time.monotonic)
    given_all: list[tuple[str, bytes]] = []
    taken_all: list[tuple[str, bytes]] = []

    def take() -> None:
        if (taken := arrivals.take(0)) is not None:
            assert 0 < len(taken.entries) <= CHUNK
            taken_all.extend(taken.entries)

    for size in sizes:
        part = entries(size, 1)
        arrivals.put(part)
        given_all += part
        for _ in range(data.draw(st.integers(2, 4))):
            take()
    arrivals.close()
    while not arrivals.is_over:
        take()

    assert taken_all == given_all
    assert arrivals.unsent == 0
    assert arrivals.take(0) is None


def test_an_arrival_is_due_when_it_came() -> None:
    now = [10.0]
    arrivals = Arrivals(lambda: now[0])
    arrivals.put(entries(1))
    now[0] += 2.5

    taken = arrivals.take(now_us=7_000_000)

    assert taken is not None
    assert taken.due_us == pytest.approx(4_500_000)
    assert arrivals.wait_s(0) == TICK_S


def test_who_hands_over_more_than_fits_waits() -> None:
    arrivals = Arrivals(time.monotonic)
    size = 10_000
    most = WAITING_BYTES // (size + ENTRY_OVERHEAD_BYTES)
    handed_over: list[int] = []

    def hand_over() -> None:
        for number in range(2 * most):
            arrivals.put([("A", bytes(size))])
            handed_over.append(number)

    thread = threading.Thread(target=hand_over)
    thread.start()
    taken = 0
    deadline = time.monotonic() + 30
    while taken < 2 * most and time.monotonic() < deadline:
        assert arrivals.unsent <= most
        if (batch := arrivals.take(0)) is not None:
            taken += len(batch.entries)
    thread.join(10)

    assert taken == len(handed_over) == 2 * most


def test_an_entry_above_the_bound_goes_through_alone() -> None:
    arrivals = Arrivals(time.monotonic)
    arrivals.put([("A", bytes(WAITING_BYTES + 1))])

    assert arrivals.unsent == 1


def test_what_waits_for_room_ends_with_the_feed() -> None:
    arrivals = Arrivals(time.monotonic)
    arrivals.put([("A", bytes(WAITING_BYTES))])
    ended = threading.Event()

    def hand_over() -> None:
        with pytest.raises(Ended):
            arrivals.put([("A", b"one more")])
        ended.set()

    thread = threading.Thread(target=hand_over)
    thread.start()
    arrivals.stop()
    thread.join(10)

    assert ended.is_set()
    assert arrivals.is_cut_short
    assert not arrivals.is_over
    assert arrivals.unsent == 1
    assert arrivals.take(0) is not None
    assert arrivals.is_over


def test_an_error_comes_after_what_came_before_it() -> None:
    arrivals = Arrivals(time.monotonic)
    arrivals.put(entries(3))
    arrivals.close(ValueError("line 4"))

    assert not arrivals.is_over
    assert arrivals.take(0) is not None
    with pytest.raises(ValueError, match="line 4"):
        arrivals.take(0)
    assert arrivals.is_over
    assert not arrivals.is_cut_short


def test_due_times_grow_over_a_schedule() -> None:
    schedule = Schedule(iter([Event(n, "A", b"") for n in range(3 * CHUNK)]))
    dues = []
    while (taken := schedule.take(1e9)) is not None:
        dues.append(taken.due_us)

    assert dues == [0, CHUNK, 2 * CHUNK]
    assert all(early < late for early, late in pairwise(dues))
