"""Names and keys of series."""

import re

import pytest

from ingest.series import (
    KEY_PATTERN,
    MOST_SERIES,
    TradeSeries,
    code_of,
    instrument_of,
    is_series,
    parse_series,
    series_of,
)

ISIN = "KR7005930003"


@pytest.mark.parametrize(
    ("name", "series"),
    [
        ("KRX", TradeSeries("KRX", "")),
        ("regular", TradeSeries("", "regular")),
        ("KRX-regular", TradeSeries("KRX", "regular")),
        ("ARCA_2-after", TradeSeries("ARCA_2", "after")),
    ],
)
def test_a_name_says_venue_and_session(name: str, series: TradeSeries) -> None:
    """And a series says its name; its key is the instrument's with the name."""
    assert TradeSeries.parse(name) == series
    assert series.name == name
    assert series.key(ISIN) == f"{ISIN}@{name}"
    assert series_of(series.key(ISIN)) == series
    assert re.fullmatch(KEY_PATTERN, series.key(ISIN))


@pytest.mark.parametrize(
    "name", ["", "krx", "KRX-", "-regular", "KRX-noon", "K" * 17, "KRX regular", "1KRX"]
)
def test_what_is_no_name_is_refused_with_the_rule(name: str) -> None:
    """Names are strangers' words: what is shown of them is short."""
    with pytest.raises(ValueError, match="must be a venue in capitals, a session"):
        TradeSeries.parse(name)
    assert not re.fullmatch(KEY_PATTERN, f"{ISIN}@{name}")


def test_a_series_has_what_says_so() -> None:
    """Both, where it asks for both; a trade that says nothing is in none."""
    regular = TradeSeries("KRX", "regular")
    assert regular.has({"venue": "KRX", "session": "regular", "side": "B"})
    assert not regular.has({"venue": "KRX", "session": "after"})
    assert not regular.has({"venue": "KRX"})
    assert not TradeSeries("NXT", "").has({})


def test_keys_are_told_apart() -> None:
    """Also from names of groups and codes that have the sign within."""
    key = f"{ISIN}@NXT"
    assert (instrument_of(key), instrument_of(ISIN)) == (ISIN, ISIN)
    assert is_series(key)
    others = [ISIN, "market:ABCDE@NXT", "005930@NXT", "*"]
    assert not any(map(is_series, others))
    assert [series_of(other) for other in others] == [None] * 4
    assert [code_of(text) for text in ("005930@NXT", key)] == ["005930", ISIN]


def test_a_setting_names_each_once() -> None:
    """In order, and no more than there may be."""
    assert parse_series(" KRX,regular , KRX,") == (
        TradeSeries("KRX", ""),
        TradeSeries("", "regular"),
    )
    assert parse_series("") == ()
    with pytest.raises(ValueError, match=f"{MOST_SERIES} at most"):
        parse_series(",".join(f"V{n}" for n in range(MOST_SERIES + 1)))
