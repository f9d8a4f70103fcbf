"""The command ``feed``: its options, its keys, its sentences."""

from pathlib import Path

import pytest
from typer.testing import Result

from cli.local.feed_keys import read_keys
from ingest.adapters.adapter import BadChoice
from ingest.exchanges.alpaca import Alpaca
from ingest.exchanges.binance import Binance
from tests.cli.running import run
from tests.ingest.adapters.exchange import answering
from tests.ports import free_port

INFO = {
    "symbols": [
        {
            "symbol": "BTCUSDT",
            "status": "TRADING",
            "baseAsset": "BTC",
            "quoteAsset": "USDT",
            "filters": [{"filterType": "PRICE_FILTER", "tickSize": "0.01000000"}],
        }
    ]
}


def sentence(result: Result) -> str:
    [line] = result.stderr.strip().splitlines()
    return line


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("nyse", "adapter 'nyse': must be one of upbit, binance, alpaca, kis, or"),
        ("ingest.trade:Trade", "ingest is a package of tickthrottle"),
        ("no_such_module:Feed", "adapter no_such_module:Feed: ModuleNotFoundError"),
        ("json:dumps", "is no class derived from ingest.adapters.adapter.Adapter"),
    ],
)
def test_an_adapter_that_cannot_be_had_is_named(name: str, rule: str) -> None:
    result = run("feed", name)
    assert result.exit_code == 2
    assert rule in sentence(result)


def test_a_key_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TICKTHROTTLE_ALPACA_KEY", "abc")
    result = run("feed", "alpaca", "--symbols", "AAPL")
    assert result.exit_code == 2
    assert sentence(result) == (
        "tickthrottle: feed alpaca: needs a key: set TICKTHROTTLE_ALPACA_SECRET, or "
        "TICKTHROTTLE_ALPACA_SECRET_FILE to a file that holds it"
    )


def test_keys_come_from_variables_and_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "secret"
    file.write_text("from-a-file\n", encoding="utf-8")
    monkeypatch.setenv("TICKTHROTTLE_ALPACA_KEY", "abc")
    monkeypatch.setenv("TICKTHROTTLE_ALPACA_SECRET_FILE", str(file))
    assert read_keys(Alpaca) == {"key": "abc", "secret": "from-a-file"}
    assert read_keys(Binance) == {}
    file.unlink()
    with pytest.raises(BadChoice, match=r"ALPACA_SECRET_FILE .*secret: No such file"):
        read_keys(Alpaca)


def test_an_exchange_that_cannot_be_reached_is_one_sentence() -> None:
    result = run("feed", "binance", "--rest-url", f"http://127.0.0.1:{free_port()}")
    assert result.exit_code == 3
    assert sentence(result).startswith(
        "tickthrottle: feed binance: 127.0.0.1 cannot be reached: "
    )


def test_the_instrument_list_is_written(tmp_path: Path) -> None:
    file = tmp_path / "instruments.csv"
    with answering({"/api/v3/exchangeInfo": (200, INFO)}) as (rest_url, _):
        result = run(
            "feed", "binance", "--rest-url", rest_url, "--write-instruments", str(file)
        )
    assert result.exit_code == 0, result.stderr
    assert file.read_text("utf-8").splitlines()[1] == (
        "QN1BTCUSDT00,BTCUSDT,BTC/USDT,BINANCE,USDT,,BTCUSDT,BINANCE,BTC/USDT,0.01"
    )


def test_a_list_that_cannot_be_written_or_read_is_named(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "instruments.csv"
    result = run(
        "feed", "binance", "--symbols", "A", "--write-instruments", str(missing)
    )
    assert (result.exit_code, "No such file" in sentence(result)) == (3, True)
    result = run("feed", "binance", "--instruments", str(missing))
    assert (result.exit_code, "No such file" in sentence(result)) == (2, True)


def test_a_raw_tape_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = run("feed", "upbit", "--replay-raw", str(tmp_path / "raw.gz"))
    assert result.exit_code == 3
    assert "raw.gz: cannot be read: No such file" in sentence(result)


@pytest.mark.parametrize(
    ("name", "symbol", "meant"),
    [("binance", "BTC/USDT:USDT", "BTCUSDT"), ("upbit", "btcusdt", "USDT-BTC")],
)
def test_a_symbol_that_cannot_be_one_is_refused_before_connecting(
    name: str, symbol: str, meant: str
) -> None:
    result = run("feed", name, "--symbols", symbol, "--url", "ws://127.0.0.1:9")
    assert result.exit_code == 2
    assert sentence(result).startswith(f"tickthrottle: feed {name}: symbol {symbol!r}")
    assert sentence(result).endswith(f"did you mean {meant}?")
