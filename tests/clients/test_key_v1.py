"""Keys for what has no ISIN: valid, of a venue's own, and turned back by rule."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tickthrottle_client.key_v1 import (
    BadSymbol,
    SymbolKeys,
    Venue,
    key_of,
    keys_of,
)
from tickthrottle_client.trade_v1 import InvalidTrade, check_isin

PREFIXES = st.sampled_from([f"Q{letter}" for letter in "MNOPQRSTUVWXYZ"])
SYMBOLS = st.text(max_size=64, min_size=1) | st.from_regex(
    r"[0-9A-Z]{1,7}[-./]?[0-9A-Z]{0,7}", fullmatch=True
)


def symbol_in(key: str) -> str | None:
    """Return the symbol that is written in a key; None if it was computed."""
    form, text = key[2], key[3:11].rstrip("0")
    if form in "01":
        return text if form == "1" else None
    kind, before = divmod(ord(form) - ord("A"), 7)
    return text[: before + 1] + "-./"[kind] + text[before + 1 :]


def test_a_key_holds_its_symbol_where_it_fits() -> None:
    """As the documentation's examples have it."""
    for prefix, symbol, key in (
        ("QN", "BTCUSDT", "QN1BTCUSDT0"),
        ("QU", "KRW-BTC", "QUCKRWBTC00"),
        ("QU", "USDT-1INCH", None),
        ("QU", "KRW-0G", "QUCKRW0G000"),
        ("QP", "BRK.B", "QPJBRKB0000"),
        ("QX", "BTC/USD", "QXQBTCUSD00"),
        ("QX", "A", "QX1A0000000"),
        # What ends in a zero could not be told from what is filled up with it.
        ("QX", "A0", None),
    ):
        made = key_of(prefix, symbol)
        if key is None:
            assert made[2] == "0"
        else:
            assert made[:-1] == key


@given(PREFIXES, SYMBOLS)
def test_every_symbol_has_a_key_that_passes_as_an_isin(
    prefix: str, symbol: str
) -> None:
    key = key_of(prefix, symbol)

    assert check_isin(key) == key
    assert key.startswith(prefix)
    assert symbol_in(key) in (symbol, None)
    assert key_of(prefix, symbol) == key


@given(SYMBOLS, SYMBOLS)
def test_two_symbols_that_are_written_out_never_share_a_key(
    one: str, other: str
) -> None:
    keys = {key_of("QX", one), key_of("QX", other)}
    if one != other and symbol_in(key_of("QX", one)) is not None:
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
    with pytest.raises(
        BadSymbol, match=r"'LONGSYMBOL2': has the same key \S+ as 'LONGSYMBOL1'"
    ):
        keys_of("QX", ["LONGSYMBOL1", "SHORT", "LONGSYMBOL2"])


def test_a_prefix_that_a_country_may_have_is_refused() -> None:
    for prefix in ("KR", "QA", "QMM", "qm"):
        with pytest.raises(BadSymbol, match=r"must be two letters from QM to QZ"):
            key_of(prefix, "BTC")


def test_a_symbol_of_no_length_or_too_much_is_refused() -> None:
    for symbol in ("", "x" * 65):
        with pytest.raises(BadSymbol, match=r"must have 1 to 64 chars"):
            key_of("QX", symbol)


def test_a_venue_has_its_letters() -> None:
    for text, venue in (
        ("XNAS", Venue("XNAS", "QX")),
        ("XNAS=QM", Venue("XNAS", "QM")),
        ("upbit", Venue("upbit", "QU")),
        ("BINANCE=QX", Venue("BINANCE", "QX")),
    ):
        assert Venue.parse(text) == venue
        assert Venue.parse(str(venue)) == venue


def test_what_is_no_venue_is_refused() -> None:
    for text in ("", "=QM", "XNAS=", "XNAS=QA", "XNAS=qm", "X" * 21):
        with pytest.raises(ValueError, match="must be a name of 1 to 20"):
            Venue.parse(text)


def test_a_trade_gets_the_key_of_its_symbol() -> None:
    keys = SymbolKeys(Venue("XNAS", "QM"))
    key = key_of("QM", "AAPL")
    assert keys.keyed({"symbol": "AAPL", "price": 1}) == {
        "symbol": "AAPL",
        "price": 1,
        "isin": key,
        "venue": "XNAS",
    }
    assert keys.keyed({"symbol": "AAPL", "venue": "ARCX"})["venue"] == "ARCX"
    for fields in ({"symbol": "x", "isin": "y"}, {"price": 1}, {"symbol": ""}):
        assert keys.keyed(fields) is fields


def test_what_is_no_symbol_is_refused_by_name() -> None:
    for symbol in (5930, "x" * 65):
        with pytest.raises(InvalidTrade, match=r"symbol .*: must") as caught:
            SymbolKeys(Venue("XNAS", "QX")).keyed({"symbol": symbol})
        assert caught.value.reason == "bad_isin"


def test_of_two_symbols_with_one_key_the_second_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Again and again, and the first one goes on."""
    monkeypatch.setattr("tickthrottle_client.key_v1._compute", lambda _: "ABCDEFGH")
    keys = SymbolKeys(Venue("XNAS", "QX"))
    key = keys.isin_of("LONGSYMBOL1")
    for _ in range(2):
        with pytest.raises(InvalidTrade, match="has the same key") as caught:
            keys.isin_of("LONGSYMBOL2")
        assert "LONGSYMBOL1" in str(caught.value)
        assert keys.isin_of("LONGSYMBOL1") == key


def test_what_is_remembered_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tickthrottle_client.key_v1.MOST_COMPUTED", 10)
    keys = SymbolKeys(Venue("XNAS", "QX"))
    symbols = [f"LONGSYMBOL{n}" for n in range(30)]
    first = [keys.key_of(symbol) for symbol in symbols]
    assert [keys.key_of(symbol) for symbol in symbols] == first
    assert len(keys._keys) <= 10
    assert len(keys._owners) == 10
