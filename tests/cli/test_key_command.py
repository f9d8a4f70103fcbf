"""``tickthrottle key``: the keys of symbols, and a list of them that can be loaded."""

import pytest

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.instrument_list import parse_list
from tests.cli.running import printed
from tickthrottle_client.key_v1 import key_of


def test_keys_are_printed_one_a_line() -> None:
    told = printed("key", "BTC", "WTI-F27", "--venue", "XMKT")
    assert told == "QX1BTC000005\nQXCWTIF27006\n"
    assert printed("key", "BTC", "--venue", "XMKT=QM") == f"{key_of('QM', 'BTC')}\n"


def test_a_list_can_be_read() -> None:
    told = printed(
        "key", "-", "--venue", "XMKT", "--list", text="BTC\n\nBTC-USDT-SWAP\n"
    )
    assert parse_list(told.splitlines(keepends=True)).instruments == [
        InstrumentEntry(key_of("QX", "BTC"), "BTC", "BTC", "XMKT"),
        InstrumentEntry(key_of("QX", "BTC-USDT-SWAP"), None, "BTC-USDT-SWAP", "XMKT"),
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["BTC", "--venue", "X Y"], "venue 'X Y': must be a name"),
        (["", "--venue", "X"], "symbol '': must have 1 to 64 chars"),
    ],
)
def test_what_has_no_key_is_one_sentence(arguments: list[str], words: str) -> None:
    said = printed("key", *arguments, code=2)
    assert words in said
    assert said.count("\n") == 1
