"""What `watch` writes of a quote, and the order of quotes."""

from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.terminal.quote_table import (
    ORDERS,
    Order,
    QuoteLine,
    clock,
    encode_item,
    grouped,
    in_order,
    read_instruments,
)
from tests.gateway.samples import HYNIX, NAVER, SAMSUNG

TIME_US = 1_773_964_801_566_788


def make_quote(isin: str = SAMSUNG, price: str = "71900", **changes: Any) -> QuoteLine:
    """Make a quote; ``code``, ``name`` and ``prev_close`` are of its instrument."""
    instrument = {
        n: changes.pop(n) for n in ("code", "name", "prev_close") if n in changes
    }
    [instrument] = read_instruments(
        {"data": [{"isin": SAMSUNG, "instrument": instrument}]}
    ).values()
    item = {"isin": isin, "price": Decimal(price), "size": Decimal(10)}
    return QuoteLine({**item, "time": TIME_US, "trades": 3, **changes}, instrument)


def test_a_quote_is_written_with_its_change() -> None:
    """Against the previous close, with an arrow beside the colour."""
    instrument = {"code": "005930", "name": "Samsung", "prev_close": "72000"}
    cells = make_quote(**instrument).cells(UTC)
    assert cells[:3] == ("005930", "Samsung", "71,900")
    assert cells[3:5] == ("▼ 100", "-0.14%")
    assert cells[5:] == ("10", "3", "00:00:01.566")


def test_what_nobody_has_said_is_left_out() -> None:
    """An instrument that is not in the table has its ISIN, and no change."""
    cells = make_quote(price="0.30").cells(UTC)
    assert cells[:5] == (SAMSUNG, "", "0.30", "", "")


def test_a_price_that_has_not_changed_has_no_arrow() -> None:
    cells = make_quote(prev_close="71900.0").cells(UTC)
    assert cells[3:5] == ("0.0", "0.00%")


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=0))
def test_groups_keep_every_digit(number: Decimal) -> None:
    """Without the commas it is the number itself."""
    assert Decimal(grouped(number).replace(",", "")) == number


def test_a_clock_has_milliseconds() -> None:
    assert clock(TIME_US, UTC) == "00:00:01.566"


@pytest.mark.parametrize(
    ("order", "isins"),
    [
        ("code", [HYNIX, SAMSUNG, NAVER]),
        ("change", [SAMSUNG, HYNIX, NAVER]),
        ("trades", [NAVER, HYNIX, SAMSUNG]),
        ("newest", [HYNIX, SAMSUNG, NAVER]),
    ],
)
def test_quotes_come_in_an_order(order: Order, isins: list[str]) -> None:
    """The greatest first; without a previous close last, equal ones by code."""
    assert order in ORDERS
    quotes = [
        make_quote(SAMSUNG, "110", code="005930", prev_close="100", trades=1),
        make_quote(HYNIX, "90", code="000660", prev_close="100", trades=2),
        make_quote(NAVER, "1", code="035420", trades=9),
    ]
    assert [quote.item["isin"] for quote in in_order(quotes, order)] == isins


def test_an_item_in_json_keeps_its_digits() -> None:
    """Also those that are written with an exponent otherwise."""
    item = make_quote(price="0.00000010").item
    assert b'"price":0.00000010,' in encode_item(item)


@pytest.mark.parametrize(
    "bad",
    [
        *({"prev_close": close} for close in ("\x1b[2J", "NaN", "1e999999999", [1])),
        *(None, [], {"prev_close": float("inf")}),
    ],
)
def test_what_no_gateway_says_of_an_instrument_is_left_out(bad: Any) -> None:
    """A hostile one cannot end the table; no change is shown against a close of 0."""
    good = {"isin": SAMSUNG, "instrument": {"code": "005930", "prev_close": "0"}}
    answer = {"data": [good, {"isin": HYNIX, "instrument": bad}]}
    assert read_instruments(answer) == {SAMSUNG: {"code": "005930"}}
    assert read_instruments(bad) == {}
