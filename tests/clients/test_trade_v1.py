"""The rules of a trade, as whoever appends follows them."""

from contextlib import suppress
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import isin as stdnum_isin

from ingest.trade import InvalidTrade, Trade
from ingest.wire_form import read_wire
from tests.ingest.strategies import decimals, isins
from tickthrottle_client.trade_v1 import encode_trade, isin_check_digit

numbers = st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", min_size=11, max_size=11)
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.binary(max_size=5)
    | st.lists(st.integers(), max_size=2)
)


@given(numbers)
def test_a_check_digit_is_that_of_the_standard(number: str) -> None:
    """A library that was written by others computes the same."""
    assert isin_check_digit(number) == str(stdnum_isin.calc_check_digit(number))


@given(isins, decimals, decimals)
def test_what_is_written_is_known_at_a_glance(isin: str, price: str, size: str) -> None:
    """In the form that readers have a short way for, if it is above one."""
    fields = {"isin": isin, "time": 1_773_964_804_000_000, "price": price, "size": size}
    found, payload = encode_trade({**fields, "side": "B"}, count(1).__next__)
    assert found == isin
    trade = Trade.from_wire(payload)
    assert trade.to_wire() == payload
    assert (trade.price, trade.size, trade.seq) == (price, size, 1)
    if not price.startswith("0") and not size.startswith("0"):
        assert read_wire(payload) is not None


@given(
    st.dictionaries(
        st.sampled_from(["isin", "time", "seq", "price", "size", "x"]), values
    ),
    isins,
)
def test_whatever_is_given_is_a_trade_or_an_error_by_name(
    fields: dict[str, Any], isin: str
) -> None:
    """What is written can be read, and nothing but InvalidTrade comes out."""
    good = {"isin": isin, "time": 1_773_964_804_000_000, "price": "1.5", "size": 1}
    with suppress(InvalidTrade):
        found, payload = encode_trade({**good, **fields}, count(1).__next__)
        assert Trade.from_wire(payload).isin == found


def test_what_has_no_names_is_no_trade() -> None:
    """A list, for instance."""
    with pytest.raises(InvalidTrade, match="is no mapping of fields"):
        encode_trade([1], int)  # type: ignore[arg-type]
