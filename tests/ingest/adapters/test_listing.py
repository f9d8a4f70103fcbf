"""Which symbols a feed follows, what they are called, and the list for a gateway."""

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from ingest.adapters.adapter import Adapter, BadChoice, ExchangeInstrument
from ingest.adapters.listing import (
    FeedInstruments,
    choose_instruments,
    encode_listing,
    parse_known,
)
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.binance import Binance
from ingest.exchanges.kis import Kis
from ingest.exchanges.upbit import Upbit
from ingest.instrument_table.instrument_list import read_instruments
from tickthrottle_client.key_v1 import key_of

MARKETS = [
    {"market": "KRW-BTC", "korean_name": "비트코인", "english_name": "Bitcoin"},
    {"market": "BTC-ETH", "korean_name": "이더리움", "english_name": "Ethereum"},
    {"market": "KRW-BIGTIME", "korean_name": "빅타임", "english_name": "Big Time"},
]


def symbol(
    name: str, base: str, quote: str, tick: str, status: str = "TRADING"
) -> object:
    rules = [{"filterType": "PRICE_FILTER", "tickSize": tick, "minPrice": tick}]
    names = {"symbol": name, "baseAsset": base, "quoteAsset": quote}
    return {**names, "status": status, "filters": [{"filterType": "LOT_SIZE"}, *rules]}


EXCHANGE_INFO = {
    "timezone": "UTC",
    "symbols": [
        symbol("BTCUSDT", "BTC", "USDT", "0.01000000"),
        symbol("ETHBTC", "ETH", "BTC", "0.00001000"),
        symbol("OLDUSDT", "OLD", "USDT", "1.00000000", "BREAK"),
        symbol("1000CHEEMSUSDT", "1000CHEEMS", "USDT", "1E-8"),
    ],
}


def fetch(address: str, fields: Mapping[str, str] | None) -> bytes:
    """Answer as the exchanges do."""
    assert fields is None
    answer: object = MARKETS if "/v1/market/all" in address else EXCHANGE_INFO
    return json.dumps(answer).encode()


def no_fetch(address: str, fields: Mapping[str, str] | None) -> bytes:
    """Fail: nothing has to be asked."""
    raise AssertionError(address)


def rows(
    kind: type[Adapter], instruments: FeedInstruments
) -> dict[str, dict[str, str]]:
    """Return the rows of the list by symbol."""
    text = encode_listing(kind, instruments)
    return {row["symbol"]: row for row in csv.DictReader(io.StringIO(text))}


def test_upbits_list_has_names_and_currencies() -> None:
    instruments = choose_instruments(Upbit, ["*"], None, fetch)
    assert instruments.symbols == ("KRW-BTC", "BTC-ETH", "KRW-BIGTIME")
    row = rows(Upbit, instruments)["KRW-BTC"]
    assert row == {
        "isin": key_of("QU", "KRW-BTC"),
        "code": "KRW-BTC",
        "name": "비트코인",
        "market": "UPBIT",
        "sector": "KRW",
        "prev_close": "",
        "symbol": "KRW-BTC",
        "venue": "UPBIT",
        "name_en": "Bitcoin",
        "tick_size": "",
    }


def test_binances_list_has_tick_sizes_and_only_what_trades() -> None:
    found = rows(Binance, choose_instruments(Binance, ["*"], None, fetch))
    assert list(found) == ["BTCUSDT", "ETHBTC", "1000CHEEMSUSDT"]
    assert found["BTCUSDT"]["tick_size"] == "0.01"
    assert found["ETHBTC"]["tick_size"] == "0.00001"
    assert found["1000CHEEMSUSDT"]["tick_size"] == "0.00000001"
    # Longer than a code may be; the name and the symbol are there.
    assert found["1000CHEEMSUSDT"]["code"] == ""
    assert found["1000CHEEMSUSDT"]["name"] == "1000CHEEMS/USDT"


def test_without_a_choice_the_adapter_chooses() -> None:
    for kind, symbols in (
        (Upbit, ("KRW-BTC", "KRW-BIGTIME")),
        (Binance, ("BTCUSDT", "1000CHEEMSUSDT")),
    ):
        assert choose_instruments(kind, [], None, fetch).symbols == symbols


def test_the_list_is_one_that_a_gateway_reads(tmp_path: Path) -> None:
    path = tmp_path / "instruments.csv"
    for kind in (Upbit, Binance):
        instruments = choose_instruments(kind, ["*"], None, fetch)
        path.write_text(encode_listing(kind, instruments), encoding="utf-8")
        known = read_instruments(path)
        assert {entry.isin for entry in known} == set(instruments.keys.values())
        assert parse_known(path.read_text("utf-8")) == dict(instruments.keys)


def test_an_odd_name_in_an_exchanges_list_costs_nobody_a_name(tmp_path: Path) -> None:
    """It is listed without what cannot be seen, and the feed goes on."""
    odd = ExchangeInstrument(
        "KRW-BTC", "비트\u200b코인\n", "Bit\u202ecoin", "KRW", "1\x1b"
    )
    instruments = choose_instruments(Upbit, ["KRW-BTC"], None, no_fetch)
    instruments = FeedInstruments(instruments.keys, {"KRW-BTC": odd})
    path = tmp_path / "instruments.csv"
    path.write_text(encode_listing(Upbit, instruments), encoding="utf-8")
    [entry] = read_instruments(path)
    assert (entry.name, entry.english_name) == ("비트코인", "Bitcoin")


def test_symbols_that_were_named_need_no_list() -> None:
    instruments = choose_instruments(
        Binance, ["ETHBTC", "BTCUSDT", "ETHBTC"], None, no_fetch
    )
    assert instruments.symbols == ("ETHBTC", "BTCUSDT")
    assert rows(Binance, instruments)["ETHBTC"]["name"] == "ETHBTC"


def test_symbols_become_what_the_exchange_writes() -> None:
    """Typed, and in an instrument list; typed in two ways it is one symbol."""
    for kind, typed, symbol in (
        *((Binance, typed, "BTCUSDT") for typed in ("btcusdt", "BTC/USDT", "btc-usdt")),
        *((Binance, typed, "BTCUSDT") for typed in ("BTC_USDT", "BtcUsdt", "BTC USDT")),
        (Binance, "币安usdt", "币安USDT"),
        *((Upbit, typed, "KRW-BTC") for typed in ("krw-btc", "KRW/BTC", "BTC/KRW")),
        *((Upbit, typed, "KRW-BTC") for typed in ("btc-krw", "KRWBTC", "btckrw")),
        *((Upbit, "BTC/USDT", "USDT-BTC"), (Upbit, "BTC-USDT", "BTC-USDT")),
        *((Upbit, "eth/btc", "BTC-ETH"), (Upbit, "sgd-btc", "SGD-BTC")),
        *((Alpaca, "aapl", "AAPL"), (Alpaca, "brk/b", "BRK.B")),
        *((Kis, typed, "005930") for typed in ("005930", "A005930", "005930.ks")),
        *((Kis, typed, "005930@NXT") for typed in ("005930@nxt", "A005930@NXT")),
        (Kis, "005930@KRX", "005930"),
    ):
        assert choose_instruments(kind, [typed, symbol], None, no_fetch).symbols == (
            symbol,
        )
        known = {typed: "KR7005930003"}
        assert choose_instruments(kind, [], known, no_fetch).keys == {
            symbol: "KR7005930003"
        }
        assert (
            choose_instruments(kind, [symbol], known, no_fetch).keys[symbol]
            == known[typed]
        )


def test_what_cannot_be_a_symbol_is_refused_before_connecting() -> None:
    for kind, typed, rule in (
        (Binance, "BTC/USDT:USDT", "such as BTCUSDT; did you mean BTCUSDT?"),
        (Binance, "btcusdt@trade", "did you mean BTCUSDT?"),
        (Binance, "?", "must be two assets of the spot market"),
        (Upbit, "BTC", "such as KRW-BTC; did you mean KRW-BTC?"),
        (Upbit, "btcusdt", "did you mean USDT-BTC?"),
        (Upbit, "KRW", "must be a currency and what is traded in it"),
        (Upbit, "KRW-BTC-1", "must be a currency and what is traded in it"),
        (Alpaca, "AAPL?", "must be a ticker, such as AAPL, BRK.B"),
        (Kis, "5930", "such as 005930; did you mean 005930?"),
        (Kis, "KR7005930003", "did you mean 005930?"),
        (Kis, "SAMSUNG", "must be a code of six digits or letters"),
    ):
        for symbols, known in (([typed], None), ([], {typed: "KR7005930003"})):
            with pytest.raises(BadChoice) as refused:
                choose_instruments(kind, symbols, known, no_fetch)
            assert f"symbol {typed!r}: " in str(refused.value)
            assert rule in str(refused.value)


def test_a_list_with_a_symbol_of_others_serves_those_that_are_followed() -> None:
    known = {"SAMSUNG": "KR7005930003", "a000660": "KR7000660001"}
    assert choose_instruments(Kis, ["000660"], known, no_fetch).keys == {
        "000660": "KR7000660001"
    }
    twice = {"btcusdt": "KR7005930003", "BTC/USDT": "KR7000660001"}
    with pytest.raises(BadChoice, match="symbol 'BTCUSDT': has two ISINs"):
        choose_instruments(Binance, [], twice, no_fetch)


def test_an_own_adapter_that_fails_at_a_symbol_is_told() -> None:
    class Own(Binance):
        @classmethod
        def canonical(cls, symbol: str) -> str:
            return {"A": "A"}[symbol]

    with pytest.raises(BadChoice, match="symbol 'B': KeyError"):
        choose_instruments(Own, ["B"], None, no_fetch)


def test_an_instrument_list_gives_the_isins() -> None:
    known = parse_known(
        "isin,code,name\nKR7005931001,005935,우\nKR7005930003,005930,x\n"
    )
    instruments = choose_instruments(Kis, [], known, no_fetch)
    assert instruments.keys == {"005935": "KR7005931001", "005930": "KR7005930003"}
    instruments = choose_instruments(Kis, ["000660", "005935"], known, no_fetch)
    assert instruments.keys == {"000660": "KR7000660001", "005935": "KR7005931001"}


def test_what_cannot_be_followed_is_said() -> None:
    for kind, symbols, rule in (
        (Alpaca, [], "alpaca has no list of its own: name symbols with --symbols"),
        (Alpaca, ["*"], "alpaca has no list of its own"),
        (
            Kis,
            ["005935"],
            "symbol '005935': has no ISIN by rule; give an instrument list",
        ),
        (
            Kis,
            [f"{n:05}0" for n in range(42)],
            "42 symbols: kis gives one feed at most",
        ),
        (Binance, ["x" * 65], "must have 1 to 64 chars"),
    ):
        with pytest.raises(BadChoice) as refused:
            choose_instruments(kind, symbols, None, no_fetch)
        assert rule in str(refused.value)


def test_a_list_that_is_wrong_is_refused() -> None:
    for text, rule in (
        ("", "line 1: must have the columns isin and symbol, or code"),
        (
            "isin,code\nKR7005930004,A\n",
            "line 2, isin 'KR7005930004': check digit is 3",
        ),
        ("isin,code\nKR7005930003\n", "line 2: has 1 cells"),
        ('isin,code\n"KR7', "not CSV"),
        (
            "isin,code\nKR7005930003,A\nKR7000660001,A\n",
            "line 3, code 'A': is there twice",
        ),
        (
            "isin,code\nKR7005930003,A\nKR7005930003,B\n",
            "line 3, code 'B': is there twice",
        ),
    ):
        with pytest.raises(BadChoice) as refused:
            parse_known(text)
        assert rule in str(refused.value)


def test_an_answer_that_is_no_list_is_refused() -> None:
    for answer in (b"{}", b"[1]", b"[{}]", b"<html>", b'{"symbols":[1]}'):
        for kind in (Upbit, Binance):
            with pytest.raises(
                BadChoice, match=r"its list of symbols cannot be read|no list"
            ):
                choose_instruments(kind, [], None, lambda *_, a=answer: a)


def test_an_instrument_of_two_venues_is_in_the_list_once() -> None:
    """Both symbols are its; a list that was given knows it by its code alone."""
    known = {"005930": "KR7005930003", "00104K": "KR700104K017"}
    symbols = ["005930", "005930@NXT", "00104K@NXT"]
    instruments = choose_instruments(Kis, symbols, known, no_fetch)
    assert set(instruments.keys.values()) == set(known.values())
    lines = encode_listing(Kis, instruments).splitlines()[1:]
    assert [line.partition(",")[0] for line in lines] == [*known.values()]
