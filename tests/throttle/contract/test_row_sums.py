"""Tests of what a row says of all its trades."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from throttle.contract.row_sums import (
    ONE,
    UNCOUNTED,
    Amounts,
    RowSums,
    checked,
    count_of,
)
from throttle.contract.snapshot import Row

BODY = b'{"isin":"KR7005930003","time":1,"seq":1,"price":199500,"size":40,"side":"S"}'

decimals = st.decimals(0, 10**18 - 1, places=18).map(lambda d: f"{d:f}")
trades = st.lists(st.tuples(decimals, decimals), min_size=1, max_size=8)


@given(trades)
def test_a_fold_has_every_digit(made: list[tuple[str, str]]) -> None:
    """Whatever the digits: sums, the highest and the lowest price."""
    first, *others = (of_trade(*trade) for trade in made)
    folded = first
    for other in others:
        folded = folded.fold(other)
    volume, value, high, low = map(Fraction, folded.encode().decode().split(",")[1:])
    exact = [(Fraction(price), Fraction(size)) for price, size in made]
    prices = [price for price, _ in exact]
    assert folded.trades == len(made)
    assert volume == sum(size for _, size in exact)
    assert value == sum(price * size for price, size in exact)
    assert (high, low) == (max(prices), min(prices))


@given(trades, trades, trades)
def test_any_order_of_folds_is_the_same(
    a: list[tuple[str, str]], b: list[tuple[str, str]], c: list[tuple[str, str]]
) -> None:
    """Merges fold what others have folded."""
    x, y, z = (_folded(made) for made in (a, b, c))
    assert x.fold(y).fold(z) == x.fold(y.fold(z)) == z.fold(x).fold(y)


@given(trades)
def test_what_is_encoded_comes_back(made: list[tuple[str, str]]) -> None:
    """As text: 37,9170,1829145000,199600,199300."""
    sums = _folded(made)
    assert RowSums.decode(sums.encode(), BODY) == sums
    assert count_of(sums.encode()) == len(made)


def test_one_trade_says_it_by_its_price_and_size() -> None:
    """Its row has no sums."""
    assert RowSums.decode(ONE, BODY) == of_trade("199500", "40")
    assert RowSums.decode(ONE, BODY).encode() == b"1,40,7980000,199500,199500"


def test_what_nobody_has_counted_is_not_made_up() -> None:
    """After a hole nobody knows what was traded in it."""
    known, unknown = of_trade("0.30", "1.5"), RowSums.decode(b"0", BODY)
    assert known.fold(unknown) == unknown.fold(known) == RowSums(1)
    assert known.fold(unknown).encode() == UNCOUNTED
    assert known.fold(known).fold(unknown).encode() == b"2"


def test_a_merged_row_is_the_newer_one_with_all_trades() -> None:
    """Its price is its own; its sums are those of both."""
    older = Row("KR7005930003", b"1", ONE, BODY.replace(b"199500", b"199600.50"))
    newer = Row("KR7005930003", b"2", b"2,5,997500,199700,199400", BODY)
    assert newer.merge(older) == newer._replace(sums=b"3,45,8981520,199700,199400")


@pytest.mark.parametrize("encoded", [b"", b"x", b"1,2", b"1,2,3,4,x"])
def test_sums_that_nobody_writes_are_refused(encoded: bytes) -> None:
    """A window with such a row is none of a throttle's."""
    with pytest.raises(ValueError, match="must be trades"):
        checked(encoded)


def of_trade(price: str, size: str) -> RowSums:
    """Return the sums of one trade."""
    return RowSums(1, Amounts.of_trade(price, size))


def _folded(made: list[tuple[str, str]]) -> RowSums:
    first, *others = (of_trade(*trade) for trade in made)
    for other in others:
        first = first.fold(other)
    return first
