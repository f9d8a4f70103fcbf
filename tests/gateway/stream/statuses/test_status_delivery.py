"""Statuses of one client: each of them at once, or how many are missing."""

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.messages import StatusPosition
from gateway.stream.counters import Counters
from gateway.stream.statuses.newest_statuses import MOST_REMEMBERED
from gateway.stream.statuses.status_delivery import (
    MOST_WAITING,
    STATUSES_A_FRAME,
    StatusDelivery,
    StatusDesk,
)
from ingest.statuses.status_entry import StatusEntry
from ingest.statuses.trading_status import TradingStatus
from tests.gateway.samples import HYNIX, SAMSUNG, make_isins

TIME_US = 1_773_964_803_000_000


class Held:
    """The keys of a client; counts how often it is woken."""

    def __init__(self, *isins: str) -> None:
        self.isins = {*isins}
        self.woken = 0

    def holds(self, isin: str) -> bool:
        return isin in self.isins

    def among(self, isins: Collection[str]) -> Collection[str]:
        return self.isins & {*isins}

    def wake(self) -> None:
        self.woken += 1


def make_entry(number: int, isin: str = SAMSUNG, time_us: int = 0) -> StatusEntry:
    """Return an entry with a price that is not for everybody."""
    status = TradingStatus(isin, "halted", TIME_US + (time_us or number))
    bare = status.encode()[:-1] + b',"number":%d}' % number
    return StatusEntry(status, number, bare[:-1] + b',"last":1}', bare)


def frames_of(delivery: StatusDelivery) -> list[dict[str, Any]]:
    """Return all that is due."""
    return [json.loads(frame) for frame in iter(delivery.next_frame, None)]


def numbers_of(frames: Sequence[dict[str, Any]]) -> list[int]:
    """Return the numbers of all entries."""
    return [entry["number"] for frame in frames for entry in frame["entries"]]


def make(*isins: str) -> tuple[StatusDesk, StatusDelivery, Held]:
    """Return a desk and a client of it."""
    desk, held = StatusDesk(Counters()), Held(*isins)
    desk.board.replace("e1", 0, [])
    return desk, StatusDelivery(desk, held, held.wake), held


def publish(desk: StatusDesk, *entries: StatusEntry) -> None:
    """Hand entries out."""
    asyncio.run(desk.publish(entries))


def test_it_is_sent_to_whoever_holds_the_instrument_and_to_nobody_else() -> None:
    desk, delivery, held = make(SAMSUNG)
    other = StatusDelivery(desk, Held(SAMSUNG), lambda: None)
    publish(desk, make_entry(1), make_entry(2, HYNIX))
    assert held.woken == 1
    first = delivery.next_frame()
    assert first is other.next_frame() is not None
    assert json.loads(first)["missed"] == 0
    assert numbers_of([json.loads(first)]) == [1]
    assert not delivery.is_owed
    publish(desk, make_entry(3, HYNIX))
    assert (held.woken, delivery.next_frame()) == (1, None)


def test_a_newcomer_is_told_what_is_current_once() -> None:
    desk, delivery, _ = make(SAMSUNG, HYNIX)
    delivery.request()
    assert delivery.is_owed
    assert delivery.next_frame() is None
    publish(desk, make_entry(1), make_entry(2, time_us=1), make_entry(3, HYNIX))
    late = StatusDelivery(desk, Held(SAMSUNG), lambda: None)
    assert late.request() == 1
    late.offer([make_entry(2)])
    [event, snapshot] = frames_of(late)
    assert (numbers_of([event]), event["snapshot"]) == ([2], False)
    assert (numbers_of([snapshot]), snapshot["snapshot"]) == ([2], True)
    late.offer([make_entry(2)])
    assert not late.is_owed


def test_what_came_late_is_sent_and_not_current() -> None:
    desk, delivery, _ = make(SAMSUNG)
    publish(desk, make_entry(1, time_us=9), make_entry(2, time_us=3))
    delivery.request()
    assert numbers_of(frames_of(delivery)) == [1, 2, 1]


@given(st.lists(st.tuples(st.integers(1, 150), st.booleans()), max_size=8))
def test_what_is_sent_and_what_is_missed_is_all(
    steps: list[tuple[int, bool]],
) -> None:
    """However slowly it is read, and what is current follows what was missed."""
    desk, delivery, _ = make(SAMSUNG)
    made, missed, sent = 0, 0, []
    for count, is_read in (*steps, (1, True)):
        publish(desk, *(make_entry(made + n) for n in range(1, count + 1)))
        made += count
        frames = frames_of(delivery) if is_read else []
        missed += sum(frame["missed"] for frame in frames)
        sent += numbers_of([f for f in frames if not f["snapshot"]])
        if frames:
            is_whole = not any(frame["missed"] for frame in frames)
            assert is_whole or frames[-1]["snapshot"]
            assert numbers_of(frames)[-1] == made
    assert len(sent) + missed == made
    assert sent == sorted({*sent})
    assert desk.counters.statuses_missed == missed


def test_memory_of_a_client_that_reads_nothing_is_bounded() -> None:
    desk, delivery, _ = make(SAMSUNG)
    for number in range(1, 1_000):
        publish(desk, make_entry(number))
        assert len(delivery._waiting) <= MOST_WAITING
    assert sum(frame["missed"] for frame in frames_of(delivery)) > 700


def test_a_token_with_an_interval_hears_no_price() -> None:
    desk, delivery, _ = make(SAMSUNG)
    delivery.is_bare = True
    publish(desk, make_entry(1))
    delivery.request()
    assert b"last" not in b"".join(iter(delivery.next_frame, None))


def test_a_key_that_was_dropped_brings_nothing() -> None:
    desk, delivery, held = make(SAMSUNG)
    publish(desk, make_entry(1))
    held.isins.clear()
    delivery.request()
    assert frames_of(delivery) == []
    delivery.close()
    publish(desk, make_entry(2))
    assert not delivery.is_owed


@pytest.mark.parametrize("missed", [3, None])
def test_after_a_hole_all_that_is_current_comes_also_if_that_is_nothing(
    missed: int | None,
) -> None:
    desk, delivery, _ = make(SAMSUNG)
    publish(desk, make_entry(1), make_entry(2))
    desk.board.replace("e2", 0, [])
    asyncio.run(desk.restart(missed))
    [frame] = frames_of(delivery)
    assert (frame["snapshot"], frame["entries"], frame["epoch"]) == (True, [], "e2")
    assert frame["missed"] == (None if missed is None else missed + 2)


def test_many_come_in_pieces() -> None:
    isins = make_isins(STATUSES_A_FRAME + 1)
    desk, delivery, _ = make(*isins)
    entries = [make_entry(n, isin) for n, isin in enumerate(isins, 1)]
    desk.board.replace("e1", len(entries), entries)
    delivery.request()
    frames = frames_of(delivery)
    assert [len(frame["entries"]) for frame in frames] == [STATUSES_A_FRAME, 1]
    assert [frame["snapshot"] for frame in frames] == [True, False]


def test_who_comes_back_gets_what_came_meanwhile_and_then_what_is_current() -> None:
    desk, _, _ = make()
    publish(desk, *(make_entry(n, (SAMSUNG, HYNIX)[n % 2]) for n in range(1, 9)))
    delivery = StatusDelivery(desk, Held(SAMSUNG), lambda: None)
    delivery.request(StatusPosition("e1", 3))
    publish(desk, make_entry(9), make_entry(10))
    meanwhile, current = frames_of(delivery)
    assert numbers_of([meanwhile]) == [4, 6, 8, 9, 10]
    assert (meanwhile["resumed"], meanwhile["missed"]) == (True, 0)
    assert (numbers_of([current]), current["snapshot"]) == ([10], True)
    publish(desk, make_entry(11))
    assert numbers_of(frames_of(delivery)) == [11]


def test_keys_that_are_added_later_repeat_nothing_of_those_before() -> None:
    desk, _, _ = make()
    publish(desk, *(make_entry(n, (SAMSUNG, HYNIX)[n % 2]) for n in range(1, 9)))
    held, since = Held(SAMSUNG), StatusPosition("e1", 3)
    delivery = StatusDelivery(desk, held, lambda: None)
    delivery.request(since)
    assert numbers_of(frames_of(delivery)[:1]) == [4, 6, 8]
    already = delivery.held_after(since)
    held.isins.add(HYNIX)
    delivery.request(since, already)
    assert numbers_of(frames_of(delivery)[:1]) == [5, 7]
    # Two at once are one answer.
    held.isins.clear()
    delivery.request(since, delivery.held_after(since))
    held.isins.add(HYNIX)
    already = delivery.held_after(since)
    held.isins.add(SAMSUNG)
    delivery.request(since, already)
    assert numbers_of(frames_of(delivery)[:1]) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("since", "missed", "first"),
    [
        (StatusPosition("e1", 10), 0, None),
        (StatusPosition("e1", 0), 4, 5),
        (StatusPosition("e1", 4), 0, 5),
        (StatusPosition("e1", 11), None, None),
        (StatusPosition("e0", 9), None, None),
    ],
)
def test_what_is_not_there_any_more_is_said(
    since: StatusPosition, missed: int | None, first: int | None
) -> None:
    """With its number, or that nobody knows; what is there is told all the same."""
    desk, delivery, _ = make(SAMSUNG)
    desk.board.newest.replace(5, [make_entry(n) for n in range(5, 11)])
    desk.board.number = 10
    delivery.request(since)
    [frame] = frames_of(delivery)
    assert (frame["resumed"], frame["missed"], frame["snapshot"]) == (
        True,
        missed,
        False,
    )
    assert numbers_of([frame])[:1] == ([] if first is None else [first])


def test_a_position_waits_until_statuses_are_known_and_is_bounded() -> None:
    desk, delivery, held = make(SAMSUNG)
    desk.board.epoch = None
    delivery.request(StatusPosition("e1", 0))
    assert frames_of(delivery) == []
    desk.board.replace("e1", 0, [])
    publish(desk, *(make_entry(n) for n in range(1, MOST_REMEMBERED + 11)))
    asyncio.run(desk.begin())
    assert held.woken == 2
    meanwhile, _ = frames_of(delivery)
    assert len(meanwhile["entries"]) == MOST_WAITING
    assert meanwhile["missed"] + MOST_WAITING == MOST_REMEMBERED + 10
