"""Movers, bursts and moves: how they are ranked and encoded."""

from dataclasses import replace
from decimal import Decimal

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.bars import Bar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.products.movers import (
    LISTS,
    MoversList,
    change_percent,
    rank,
    row,
)
from throttle.contract.products.moves import Move

PRICES = st.integers(1, 1_000).map(Decimal)


def make_bar(
    isin: str, first: Decimal, last: Decimal, value: Decimal | None = Decimal(1)
) -> Bar:
    """Make an instrument's bar of a span."""
    prices = first, max(first, last), min(first, last), last
    return Bar(isin, 0, 300_000, *prices, Decimal(2), value, 1, False, 0)


@given(st.lists(st.tuples(PRICES, PRICES), max_size=40), st.integers(1, 10))
def test_the_lists_are_the_extremes_in_order(
    prices: list[tuple[Decimal, Decimal]], most: int
) -> None:
    """Whoever is not listed is no further than the last that is."""
    bars = [make_bar(f"I{n:02}", *pair) for n, pair in enumerate(prices)]
    lists = rank(bars, most)
    gained = [change_percent(bar.open, bar.close) for bar in lists["gainers"]]
    lost = [change_percent(bar.open, bar.close) for bar in lists["losers"]]
    assert gained == sorted(gained, reverse=True)
    assert lost == sorted(lost)
    rest = [bar for bar in bars if bar not in lists["gainers"]]
    if len(gained) == most:
        assert all(change_percent(b.open, b.close) <= gained[-1] for b in rest)
    else:
        assert all(bar.close <= bar.open for bar in rest)
    assert all(len(listed) <= most for listed in lists.values())


def test_equal_ones_are_listed_by_isin_and_what_does_not_fit_first() -> None:
    """The same bars give the same lists."""
    bars = [make_bar(isin, Decimal(1), Decimal(2)) for isin in "CAB"]
    assert [bar.isin for bar in rank(bars, 2)["gainers"]] == ["A", "B"]
    assert [bar.isin for bar in rank(bars, 2)["value"]] == ["A", "B"]
    bars.append(make_bar("Z", Decimal(1), Decimal(1), None))
    assert [bar.isin for bar in rank(bars, 2)["value"]] == ["Z", "A"]
    assert rank(bars, 9)["losers"] == []


def test_what_has_no_price_has_not_moved() -> None:
    """What was traded of it counts; its change is not known."""
    unpriced = replace(
        make_bar("KR7005930003", Decimal(1), Decimal(1)), open=None, close=None
    )
    lists = rank([unpriced, make_bar("B", Decimal(1), Decimal(2), Decimal(9))], 2)
    assert [len(lists[name]) for name in LISTS] == [1, 0, 2, 2]
    fields = row(unpriced)
    assert (fields["change"], fields["percent"], fields["trades"]) == (None, None, 1)
    assert orjson.loads(TradingBurst(unpriced).body())["percent"] is None


def test_a_list_survives_redis() -> None:
    """With the change and its rate as exact numbers."""
    bar = make_bar("KR7005930003", Decimal(3), Decimal("3.5"))
    lists = {name: [row(bar)] for name in LISTS}
    message = MoversList("e", 3, 0, 300_000, 1, lists).encode()
    assert b'"change":0.5,"percent":16.6667' in message
    fields = orjson.loads(message)
    assert (fields["sequence"], fields["end"], fields["instruments"]) == (3, 300_000, 1)
    assert fields["losers"][0]["isin"] == bar.isin


def test_a_burst_survives_redis() -> None:
    """Clients get the fields of a bar, and how the price went."""
    burst = TradingBurst(make_bar("KR7005930003", Decimal(4), Decimal(3)))
    assert TradingBurst.decode(burst.encode()) == burst
    fields = orjson.loads(burst.body())
    assert fields["percent"] == -25
    assert not {"closed", "revision"} & fields.keys()


def test_a_move_survives_redis() -> None:
    """With both prices and the rate between them."""
    move = Move("KR7005930003", 1, 2, 7, Decimal("10.50"), Decimal(11))
    assert Move.decode(move.encode()) == move
    assert move.body() == (
        b'{"isin":"KR7005930003","start":1,"end":2,"seq":7,"from":10.5,"to":11,'
        b'"percent":4.7619}'
    )
    with pytest.raises(ValueError):  # noqa: PT011 - the contract is the type
        Move.decode(b"x 1 2 3 4 y")
