"""Keys of bars."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.market_instruments import MarketInstruments
from gateway.protocol.messages import Rejection
from gateway.protocol.prefixed_keys import (
    MOST_READ,
    BarKey,
    bars_read,
    parts_of,
    read_bar_key,
)
from tests.gateway.samples import LISTED, NAVER, SAMSUNG
from throttle.contract.bar_intervals import INTERVALS


def test_a_key_names_an_interval_and_an_instrument() -> None:
    """By ISIN, by code, or every instrument."""
    cases: list[tuple[str, BarKey]] = [
        (f"bars:1m:{SAMSUNG}", BarKey("1m", SAMSUNG)),
        ("bars:1d:005930", BarKey("1d", SAMSUNG)),
        ("bars:1h:*", BarKey("1h", "*")),
    ]
    for text, key in cases:
        assert read_bar_key(text, LISTED) == key
        assert read_bar_key(str(key), LISTED) == key


def test_a_bad_key_is_told_with_its_rule() -> None:
    """Under the name it was asked by."""
    cases: list[tuple[str, str, str]] = [
        ("bars:", "unknown_key", "must be one of 1m, 5m, 15m, 1h, 1d"),
        ("bars:2m:*", "unknown_key", "interval '2m'"),
        ("bars:1m", "unknown_key", "must name an instrument"),
        ("bars:1m:", "unknown_key", "must name an instrument"),
        ("bars:1m:KR7005930004", "bad_isin", "check digit"),
        ("bars:1m:999999", "unknown_key", "no instrument has this code"),
        ("bars:1m:market:KOSPI", "unknown_key", "the market of no instrument"),
    ]
    for text, code, rule in cases:
        rejection = read_bar_key(text, LISTED)
        assert isinstance(rejection, Rejection)
        assert (rejection.key, rejection.code) == (text, code)
        assert rule in rejection.message


@given(st.text(max_size=60))
def test_any_text_is_a_key_or_is_refused(text: str) -> None:
    """Nothing that a stranger sends breaks the reading."""
    assert isinstance(read_bar_key("bars:" + text, LISTED), BarKey | Rejection)


def test_a_gateway_of_one_market_has_bars_of_its_instruments() -> None:
    """Named one by one, as `*` would be all markets."""
    kospi = MarketInstruments(LISTED, "KOSPI")
    assert read_bar_key(f"bars:1m:{SAMSUNG}", kospi) == BarKey("1m", SAMSUNG)
    for name in (NAVER, "035420", "*"):
        rejection = read_bar_key(f"bars:1m:{name}", kospi)
        assert isinstance(rejection, Rejection)
        assert rejection.code == "not_served"


def test_a_longer_bar_has_so_many_parts() -> None:
    """A day as many as the longest day, the one when clocks are set back."""
    assert [parts_of(name, 60_000) for name in ("1m", "5m", "1h")] == [1, 5, 60]
    assert parts_of("1d", 60_000) == 25 * 60
    assert parts_of("1m", 1_000) == 60


def test_a_longer_bar_costs_the_bars_it_is_made_of() -> None:
    """The newest day is kept as it is; older days are folded from their minutes."""
    costs = {name: bars_read(BarKey(name, SAMSUNG), 1) for name in INTERVALS}
    assert costs == {"1m": 1, "5m": 5, "15m": 15, "1h": 60, "1d": 1}
    assert bars_read(BarKey("1h", SAMSUNG), 300) == 18_000
    assert bars_read(BarKey("1d", SAMSUNG), 300) == MOST_READ
