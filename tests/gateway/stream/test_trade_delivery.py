"""Trades of one client: all of them in order, or how many are missing."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.stream.counters import Counters
from gateway.stream.trade_delivery import (
    MOST_WAITING,
    MOST_WAITING_BYTES,
    TradeDelivery,
    TradeDesk,
)

A, B = "KR7005930003", "KR7000660001"


class Sleeper:
    """Counts how often it is woken."""

    def __init__(self) -> None:
        self.woken = 0

    def wake(self) -> None:
        """Note it."""
        self.woken += 1


def frames_of(delivery: TradeDelivery) -> list[dict[str, Any]]:
    """Return all that is due."""
    return [json.loads(frame) for frame in iter(delivery.next_frame, None)]


@given(st.lists(st.tuples(st.integers(1, 900), st.booleans()), max_size=12))
def test_what_is_sent_and_what_is_missing_is_all(
    looks: list[tuple[int, bool]],
) -> None:
    """However slowly it is read: numbers have no hole that is not told."""
    counters = Counters()
    desk, made, due = TradeDesk(counters), 0, None
    delivery = TradeDelivery(desk, Sleeper().wake)
    delivery.add([A])
    sent: list[int] = []
    missed = 0
    for count, is_read in (*looks, (1, True)):
        desk.publish({A: [b'{"n":%d}' % (made + n) for n in range(1, count + 1)]})
        made += count
        for frame in frames_of(delivery) if is_read else ():
            assert due is None or frame["number"] == due + frame["missed"]
            missed += frame["missed"]
            of_frame = [entry["n"] for entry in frame["entries"]]
            last = frame["number"] + len(of_frame)
            assert of_frame == list(range(frame["number"], last))
            due = last
            sent += of_frame
    assert len(sent) + missed == made
    assert counters.trades_missed == missed
    assert len(set(sent)) == len(sent)


def test_what_waits_is_bounded_in_number_and_in_bytes() -> None:
    """The oldest make room; the newest look is kept, however large it is."""
    desk = TradeDesk(Counters())
    delivery = TradeDelivery(desk, Sleeper().wake)
    delivery.add([A, B])
    for _ in range(10):
        desk.publish({A: [b"{}"] * 500, B: [b'"%b"' % (b"x" * 100_000)]})
    found = frames_of(delivery)
    assert sum(len(f["entries"]) for f in found if f["isin"] == A) == MOST_WAITING
    size = sum(len(json.dumps(f["entries"])) for f in found if f["isin"] == B)
    assert size < MOST_WAITING_BYTES + 100_000


def test_instruments_take_turns_and_those_who_keep_up_share_a_frame() -> None:
    """One that is busy does not keep the other one waiting."""
    desk, sleepers = TradeDesk(Counters()), [Sleeper(), Sleeper()]
    deliveries = [TradeDelivery(desk, sleeper.wake) for sleeper in sleepers]
    for delivery in deliveries:
        delivery.add([A, B])
    desk.publish({A: [b"1"] * 500, B: [b"2"]})
    desk.publish({A: [b"1"] * 500})
    assert [sleeper.woken for sleeper in sleepers] == [2, 2]
    isins = [frame["isin"] for frame in frames_of(deliveries[0])]
    assert isins == [A, B, A]
    desk.publish({B: [b"3"]})
    deliveries[1].drop([A])
    frames_of(deliveries[1])
    frames_of(deliveries[0])
    desk.publish({B: [b"4"]})
    first, second = (delivery.next_frame() for delivery in deliveries)
    assert first is second


def test_a_gap_of_unknown_length_is_told_where_it_is() -> None:
    """Once, also if what came behind it was left out; after that numbers say it."""
    desk = TradeDesk(Counters())
    delivery = TradeDelivery(desk, Sleeper().wake)
    delivery.add([A])
    desk.publish({A: [b"1"]})
    desk.skip()
    desk.publish({A: [b"2"]})
    desk.publish({A: [b"3"]})
    found = frames_of(delivery)
    assert [frame["missed"] for frame in found] == [0, None]
    assert [frame["entries"] for frame in found] == [[1], [2, 3]]
    desk.skip()
    for _ in range(5):
        desk.publish({A: [b"4"] * 500})
    [first, *others] = frames_of(delivery)
    assert first["missed"] is None
    assert {frame["missed"] for frame in others} == {0}
    delivery.close()
    assert not desk.isins
