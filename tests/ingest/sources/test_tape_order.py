"""Tapes out of order: what is one, and sorting it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources import tape_order
from ingest.sources.tape_order import TapeOrder, TooManyTrades, sort_trades, span_words
from ingest.trade import Trade

FIRST_US = 1_795_564_800_000_000
SAMSUNG, HYNIX = "KR7005930003", "KR7000660001"


def trade(time_s: float, isin: str = SAMSUNG, seq: int = 0) -> Trade:
    """A trade so many seconds after a first one."""
    return Trade(isin, FIRST_US + int(time_s * 1e6), seq, "1", "1")


def order_of(*times_s: float) -> TapeOrder:
    """What is found of a tape with these times."""
    order = TapeOrder()
    for time_s in times_s:
        order.add(trade(time_s))
    return order


def test_a_step_back_within_a_second_is_in_order() -> None:
    order = order_of(0, 5, 4, 4.2, 4.5, 4.9, 6)
    assert not order.is_broken
    assert order.first is None


def test_one_wrong_clock_is_told_and_breaks_nothing() -> None:
    order = order_of(0, 5, -600, 6, 7)
    assert not order.is_broken
    assert order.first == (
        "trade 3 (KR7005930003) is 10.1 minutes older than one before it"
    )


def test_three_trades_out_of_order_make_a_tape_that_is_not() -> None:
    order = order_of(0, 5, 1, 2, 3)
    assert order.is_broken
    assert order.first == (
        "trade 3 (KR7005930003) is 4 seconds older than one before it"
    )


def test_enough_is_seen_some_time_after_the_second_instrument(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A tape sorted by instrument looks in order until its second one."""
    monkeypatch.setattr(tape_order, "LOOKED_AT", 3)
    monkeypatch.setattr(tape_order, "_MOST_LOOKED_AT", 20)
    order = TapeOrder()
    for time_s in range(10):
        order.add(trade(time_s))
        assert not order.is_clear
    for time_s in range(10, 13):
        order.add(trade(time_s, HYNIX))
        assert not order.is_clear
    order.add(trade(13, HYNIX))
    assert order.is_clear
    order = TapeOrder()
    for time_s in range(20):
        assert not order.is_clear
        order.add(trade(time_s))
    assert order.is_clear


@given(st.lists(st.integers(0, 5), max_size=30))
def test_trades_are_sorted_and_equal_times_stay_as_they_stand(times: list[int]) -> None:
    tape = [trade(time_s, seq=seq) for seq, time_s in enumerate(times)]
    sorted_trades = [Trade.from_wire(payload) for _, payload in sort_trades(tape)]
    assert sorted_trades == sorted(tape, key=lambda t: (t.time_us, t.seq))


def test_sorting_takes_no_more_memory_than_it_may() -> None:
    with pytest.raises(TooManyTrades):
        sort_trades([trade(1)] * 100, most_bytes=5_000)


@pytest.mark.parametrize(
    ("span_us", "words"),
    [
        (500, "0.5 ms"),
        (999_000, "999 ms"),
        (1_000_000, "1 second"),
        (2_500_000, "2.5 seconds"),
        (90_000_000, "1.5 minutes"),
        (3_600_000_000, "1 hour"),
        (2_592_000_000_000, "30 days"),
        (820_454_400_000_000, "26 years"),
    ],
)
def test_a_span_is_said_in_its_largest_unit(span_us: int, words: str) -> None:
    assert span_words(span_us) == words
