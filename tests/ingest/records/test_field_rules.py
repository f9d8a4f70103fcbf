"""Constants, signs and scales: every digit stays."""

from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.records.field_rules import FieldRules
from ingest.records.leave_out import Condition, LeftOut
from ingest.trade import InvalidTrade, JsonNumber
from tests.ingest.strategies import decimals


def apply(fields: dict[str, Any], **given_rules: Any) -> dict[str, Any]:
    """Return what becomes of fields."""
    none: dict[str, Any] = {
        "constants": {},
        "conditions": [],
        "scale": {},
        "unsigned": (),
        "names": {},
    }
    FieldRules(**{**none, **given_rules}).apply(fields)
    return fields


@pytest.mark.parametrize(
    ("value", "factor", "scaled"),
    [
        (79_000_000_000, "1e-9", "79"),
        ("230150000000", "1e-9", "230.15"),
        (" 1.50", "10", "15"),
        (JsonNumber("6E-8"), "100000000", "6"),
        ("0.1", "0.1", "0.01"),
        ("123456789012345678", "0.000000000000000001", "0.123456789012345678"),
    ],
)
def test_a_scale_is_exact(value: Any, factor: str, scaled: str) -> None:
    assert apply({"price": value}, scale={"price": Decimal(factor)}) == {
        "price": scaled
    }


@given(decimals, st.integers(-4, 4))
def test_a_scale_there_and_back_is_the_same_number(text: str, places: int) -> None:
    with suppress(InvalidTrade):
        there = apply({"size": text}, scale={"size": Decimal(1).scaleb(places)})
        back = apply(there, scale={"size": Decimal(1).scaleb(-places)})
        assert Decimal(back["size"]) == Decimal(text)


def test_what_does_not_fit_is_refused_by_name() -> None:
    with pytest.raises(InvalidTrade, match=r"price '0.1': times 1E-18: must have at"):
        apply({"price": "0.1"}, scale={"price": Decimal("1e-18")})
    with pytest.raises(InvalidTrade, match="price 'x'"):
        apply({"price": "x"}, scale={"price": Decimal(10)})


@pytest.mark.parametrize(
    ("value", "left"),
    [
        ("-71900", "71900"),
        ("+72000", "72000"),
        (" -5", "5"),
        (-5, 5),
        (JsonNumber("-37.63"), "37.63"),
        ("--5", "-5"),
        (None, None),
        ([1], [1]),
    ],
)
def test_one_sign_is_left_out(value: Any, left: Any) -> None:
    assert apply({"price": value}, unsigned=["price"]) == {"price": left}


def test_a_constant_is_there_whatever_the_record_says() -> None:
    assert apply({"isin": "x"}, constants={"isin": "y", "venue": "V"}) == {
        "isin": "y",
        "venue": "V",
    }


def test_a_record_is_left_out_before_its_values_are_looked_at() -> None:
    rules = {"conditions": [Condition.parse("qty~~-")], "names": {"size": "qty"}}
    with pytest.raises(LeftOut):
        apply({"size": "-5", "price": "x"}, scale={"price": Decimal(10)}, **rules)
    assert apply({"size": "5"}, **rules) == {"size": "5"}


def test_rules_that_do_nothing_know_it() -> None:
    nothing = FieldRules(constants={}, conditions=(), scale={}, unsigned=(), names={})
    assert nothing.are_none
    assert nothing.fields_looked_at == []
