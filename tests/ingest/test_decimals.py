"""Decimals of any notation become plain ones, exactly, or are refused."""

from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.decimals import MAX_CHARS, PLACES, plain_decimal
from ingest.trade import FRACTION_PATTERN, WHOLE_PATTERN


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("71900", "71900"),
        ("1.50", "1.50"),
        ("0.000000000000000001", "0.000000000000000001"),
        ("6E-8", "0.00000006"),
        ("6e-08", "0.00000006"),
        ("1.5e3", "1500"),
        ("1.50E+1", "15.0"),
        ("1E17", "1" + "0" * 17),
        (".5", "0.5"),
        ("5.", "5"),
        ("+5", "5"),
        ("007.10", "7.10"),
        ("0.00e5", "0"),
        ("0e9999", "0"),
        ("1.0000000000000000000000", "1." + "0" * 18),
    ],
)
def test_notations(text: str, plain: str) -> None:
    assert plain_decimal(text) == plain


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "-1", "1,5", " 1", "1 ", "0x10", "1e", "e5", "NaN", "Infinity"),
        *("1_000", "\u0663", "1E18", "1E-19", "9" * 19, "0." + "0" * 18 + "1"),
        *("1" * (MAX_CHARS + 1), "1e9999", "1e-9999", "1e99999"),
    ],
)
def test_what_is_no_plain_decimal_above_zero_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must"):
        plain_decimal(text)


DECIMALS = st.decimals(
    min_value=Decimal(0), max_value=Decimal(10) ** PLACES - 1, places=PLACES
)


@given(DECIMALS, st.integers(-8, 8))
def test_every_digit_stays(value: Decimal, shift: int) -> None:
    """An exponent that is written differently stands for the same number."""
    # The same value: the point moves one way, the exponent the other.
    text = f"{value.scaleb(-shift, Context(prec=MAX_CHARS)):f}"
    if len(text) > MAX_CHARS - 4:
        return
    try:
        plain = plain_decimal(f"{text}E{shift}")
    except ValueError:
        pytest.fail(f"{text}E{shift} has {PLACES} digits on each side at most")
    assert Decimal(plain) == value


@given(st.text(alphabet="0123456789.eE+-", max_size=30))
def test_what_comes_out_is_plain_and_equal(text: str) -> None:
    try:
        plain = plain_decimal(text)
    except ValueError:
        return
    whole, _, fraction = plain.partition(".")
    assert whole == "0" or (whole[0] != "0" and len(whole) <= PLACES)
    assert len(fraction) <= PLACES
    assert Decimal(plain) == Decimal(text)


@given(st.from_regex(f"(?:0|{WHOLE_PATTERN})(?:{FRACTION_PATTERN})?", fullmatch=True))
def test_what_is_plain_stays(text: str) -> None:
    assert plain_decimal(text) == text
