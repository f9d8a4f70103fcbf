"""Keys for what has no ISIN: valid, of a venue's own, and turned back by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickthrottle_client.key_v1 import (
    BadSymbol,
    key_of,
    keys_of,
    symbol_of,
)
from tickthrottle_client.trade_v1 import check_isin

PREFIXES = st.sampled_from([f"Q{letter}" for letter in "MNOPQRSTUVWXYZ"])
SYMBOLS = st.text(max_size=64, min_size=1) | st.from_regex(
    r"[0-9A-Z]{1,7}[-./]?[0-9A-Z]{0,7}", fullmatch=True
)


@pytest.mark.parametrize(
    ("prefix", "symbol", "key"),
    [
        ("QN", "BTCUSDT", "QN1BTCUSDT0"),
        ("QU", "KRW-BTC", "QUCKRWBTC00"),
        ("QU", "USDT-1INCH", None),
        ("QU", "KRW-0G", "QUCKRW0G000"),
        ("QP", "BRK.B", "QPJBRKB0000"),
        ("QX", "BTC/USD", "QXQBTCUSD00"),
        ("QX", "A", "QX1A0000000"),
        # What ends in a zero could not be told from what is filled up with it.
        ("QX", "A0", None),
    ],
)
def test_a_key_holds_its_symbol_where_it_fits(
    prefix: str, symbol: str, key: str | None
) -> None:
    """As the documentation's examples have it."""
    made = key_of(prefix, symbol)
    if key is None:
        assert made[2] == "0"
        assert symbol_of(made) is None
    else:
        assert made[:-1] == key
        assert symbol_of(made) == symbol


@given(PREFIXES, SYMBOLS)
def test_every_symbol_has_a_key_that_passes_as_an_isin(
    prefix: str, symbol: str
) -> None:
    key = key_of(prefix, symbol)

    assert check_isin(key) == key
    assert key.startswith(prefix)
    assert symbol_of(key) in (symbol, None)
    assert key_of(prefix, symbol) == key


@given(SYMBOLS, SYMBOLS)
def test_two_symbols_that_are_written_out_never_share_a_key(
    one: str, other: str
) -> None:
    keys = {key_of("QX", one), key_of("QX", other)}
    if one != other and symbol_of(key_of("QX", one)) is not None:
        assert len(keys) == 2


@given(st.sets(SYMBOLS, max_size=50))
def test_a_list_has_a_key_for_each(symbols: set[str]) -> None:
    keys = keys_of("QX", symbols)
    assert keys.keys() == symbols
    assert len(set(keys.values())) == len(symbols)


def test_two_symbols_of_one_key_are_refused_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As rare as it is, nobody's prices become somebody else's."""
    monkeypatch.setattr("tickthrottle_client.key_v1._compute", lambda _: "ABCDEFGH")
    with pytest.raises(BadSymbol, match=r"'LONGSYMBOL1' and 'LONGSYMBOL2': have the"):
        keys_of("QX", ["LONGSYMBOL1", "SHORT", "LONGSYMBOL2"])


@pytest.mark.parametrize("prefix", ["KR", "QA", "XA", "Q", "QMM", "qm"])
def test_a_prefix_that_a_country_may_have_is_refused(prefix: str) -> None:
    with pytest.raises(BadSymbol, match=r"must be two letters from QM to QZ"):
        key_of(prefix, "BTC")


@pytest.mark.parametrize("symbol", ["", "x" * 65])
def test_a_symbol_of_no_length_or_too_much_is_refused(symbol: str) -> None:
    with pytest.raises(BadSymbol, match=r"must have 1 to 64 chars"):
        key_of("QX", symbol)
