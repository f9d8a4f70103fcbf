"""Sizes and values in columns: exact, whatever they are."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from throttle.contract.row_sums import Amounts, RowSums
from throttle.window.trade_sums import (
    FOLDS,
    SUMS,
    of_amounts,
    of_columns,
    pack,
    texts,
    to_amounts,
    to_units,
    unpack,
)

ONE = "1" + "0" * 17
TINY = "0." + "0" * 17 + "1"

decimals = st.builds(
    lambda whole, fraction: f"{whole}.{fraction}" if fraction else str(whole),
    st.integers(1, 10**18 - 1) | st.integers(1, 10**6),
    st.just("")
    | st.text("0123456789", max_size=4)
    | st.text("0123456789", max_size=18),
)
numbers = st.lists(st.tuples(decimals, decimals), min_size=1, max_size=8)


@given(numbers)
@example([("199500", "3")])
@example([("999999999", "999999999"), ("1", "1")])
@example([("0.00000001", "0.12345678"), ("123456789.12345678", "80.1")])
@example([(ONE, ONE), (TINY, TINY)])
def test_volume_and_value_are_exact(pairs: list[tuple[str, str]]) -> None:
    """In columns where they fit, else nothing is in them and somebody is told."""
    prices, sizes = (pa.array(c, pa.string()) for c in zip(*pairs, strict=True))
    columns, fits = of_columns(prices, sizes)
    assert tuple(columns) == tuple(FOLDS)
    rows = list(zip(*(column.to_pylist() for column in columns.values()), strict=True))
    for place, (price, size) in enumerate(pairs):
        if fits is None or fits[place].as_py():
            assert to_amounts(rows[place]) == Amounts.of_trade(price, size)
            assert to_units(rows[place]) == to_amounts(rows[place])[:2]
            assert all(0 <= part < 10**10 for part in rows[place][: len(SUMS)])
        else:
            assert rows[place] == (None,) * len(FOLDS)


@given(numbers)
def test_both_ways_into_columns_are_one(pairs: list[tuple[str, str]]) -> None:
    """Trades that are judged one by one have the same columns."""
    prices, sizes = (pa.array(c, pa.string()) for c in zip(*pairs, strict=True))
    quick, fits = of_columns(prices, sizes)
    exact, odd = of_amounts([Amounts.of_trade(*pair) for pair in pairs])
    for place in range(len(pairs)):
        if place not in odd:
            continue
        assert fits is not None
        assert not fits[place].as_py()
    for name in FOLDS:
        for place, part in enumerate(quick[name].to_pylist()):
            if part is not None:
                assert exact[name][place].as_py() == part


@given(numbers)
@example([("0.3", "1.5"), ("199500", "40")])
@example([("0.00000001", "0.00000001")] * 3)
def test_columns_are_text_with_every_digit(pairs: list[tuple[str, str]]) -> None:
    """As a row says them; sums may be more than a part's eight digits hold."""
    prices, sizes = (pa.array(c, pa.string()) for c in zip(*pairs, strict=True))
    columns, fits = of_columns(prices, sizes)
    tripled = {
        name: pc.multiply(column, 3) if FOLDS[name] == "sum" else column
        for name, column in columns.items()
    }
    for place, text in enumerate(texts(tripled).to_pylist()):
        if fits is not None and not fits[place].as_py():
            assert text is None
            continue
        one = Amounts.of_trade(*pairs[place])
        amounts = one.fold(one).fold(one)
        assert RowSums(3, amounts).encode() == b"3," + text.encode()
        assert unpack(pack(amounts)) == amounts


@pytest.mark.parametrize("price", ["199500", "0.5", "3000000000"])
def test_a_usual_trade_fits(price: str) -> None:
    """What real markets trade does not leave the columns."""
    is_large = len(price) == 10
    prices, sizes = pa.array([price]), pa.array(["3"])
    assert (of_columns(prices, sizes)[1] is None) is not is_large
    assert (of_amounts([Amounts.of_trade(price, "3")])[1] == []) is True
