"""Keys of bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.bar_keys import BarKey, is_bar_key, read_bar_key
from gateway.protocol.market_issues import MarketIssues
from gateway.protocol.messages import Rejection
from tests.gateway.samples import LISTED, NAVER, SAMSUNG


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"bars:1m:{SAMSUNG}", BarKey("1m", SAMSUNG)),
        ("bars:1d:005930", BarKey("1d", SAMSUNG)),
        ("bars:1h:*", BarKey("1h", "*")),
    ],
)
def test_a_key_names_an_interval_and_an_issue(text: str, key: BarKey) -> None:
    """By ISIN, by code, or every issue."""
    assert is_bar_key(text)
    assert read_bar_key(text, LISTED) == key
    assert read_bar_key(str(key), LISTED) == key


@pytest.mark.parametrize(
    ("text", "code", "rule"),
    [
        ("bars:", "unknown_key", "must be one of 1m, 5m, 15m, 1h, 1d"),
        ("bars:2m:*", "unknown_key", "interval '2m'"),
        ("bars:1m", "unknown_key", "must name an issue"),
        ("bars:1m:", "unknown_key", "must name an issue"),
        ("bars:1m:KR7005930004", "bad_isin", "check digit"),
        ("bars:1m:999999", "unknown_key", "no issue has this code"),
        ("bars:1m:market:KOSPI", "unknown_key", "the market of no issue"),
    ],
)
def test_a_bad_key_is_told_with_its_rule(text: str, code: str, rule: str) -> None:
    """Under the name it was asked by."""
    rejection = read_bar_key(text, LISTED)
    assert isinstance(rejection, Rejection)
    assert (rejection.key, rejection.code) == (text, code)
    assert rule in rejection.message


@given(st.text(max_size=60))
def test_any_text_is_a_key_or_is_refused(text: str) -> None:
    """Nothing that a stranger sends breaks the reading."""
    assert isinstance(read_bar_key("bars:" + text, LISTED), BarKey | Rejection)


def test_a_gateway_of_one_market_has_bars_of_its_issues() -> None:
    """Named one by one, as `*` would be all markets."""
    kospi = MarketIssues(LISTED, "KOSPI")
    assert read_bar_key(f"bars:1m:{SAMSUNG}", kospi) == BarKey("1m", SAMSUNG)
    for name in (NAVER, "035420", "*"):
        rejection = read_bar_key(f"bars:1m:{name}", kospi)
        assert isinstance(rejection, Rejection)
        assert rejection.code == "not_served"
