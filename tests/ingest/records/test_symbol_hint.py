"""What symbols look like that are not on a list."""

import pytest

from ingest.records.symbol_hint import hint_of

LISTED = {"005930", "AAPL", "BTCUSDT", "btc"}


@pytest.mark.parametrize(
    ("symbol", "hint"),
    [
        ("5930", "; it looks like a code without its zeros: '005930' is on the list"),
        ("A005930", "; it looks like a code with a letter in front: '005930' is"),
        ("005930.KS", "; it looks like a code with its market: '005930' is"),
        ("KRX:005930", "; it looks like a code with its market: '005930' is"),
        ("AAPL US", "; it looks like a code with its market: 'AAPL' is"),
        ("aapl", "; it has small letters: 'AAPL' is"),
        ("BTC", "; it has capitals: 'btc' is"),
        ("BTC-USDT", "; it has a separator: 'BTCUSDT' is"),
        ("660", ""),
        ("MSFT", ""),
        ("²", ""),
        ("", ""),
    ],
)
def test_a_symbol_that_is_nearly_on_the_list(symbol: str, hint: str) -> None:
    found = hint_of(symbol, LISTED.__contains__)
    assert found.startswith(hint)
    assert bool(found) == bool(hint)
