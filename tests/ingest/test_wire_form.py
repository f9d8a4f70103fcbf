"""What is recognised at a glance is what the rule says."""

import pytest
from hypothesis import example, given, settings

from ingest.trade import MAX_PAYLOAD_BYTES, Trade, read_wire
from tests.examples import many
from tests.ingest.strategies import trades
from tests.throttle.payloads import payloads

WIRE = Trade("KR7005930003", 1_773_964_801_566_788, 7, "199400", "918").to_wire()


@settings(max_examples=many(400))
@given(payloads)
@example(WIRE.replace(b"}", b',"trades":1}'))
@example(WIRE.replace(b"}", b',"price":"2"}'))
@example(WIRE.replace(b"}", b',"pad":"%s"}' % (b"x" * MAX_PAYLOAD_BYTES)))
@example(WIRE.replace(b"0003", b"0004"))
@example(WIRE.replace(b":1773964801566788", b":9999999999999999"))
@example(WIRE + b"\n")
@example(WIRE.replace(b"}", b',"updates":"high"}'))
def test_what_is_recognised_is_valid(payload: bytes) -> None:
    known = read_wire(payload)
    if known is not None:
        trade = Trade.from_wire(payload)
        assert known == (trade.isin, *trade.version)


@given(trades)
def test_usual_trades_are_recognised(trade: Trade) -> None:
    usual = Trade(trade.isin, 1_773_964_801_566_788, trade.seq % 10**18, "1.50", "3")
    assert read_wire(usual.to_wire()) == (usual.isin, *usual.version)
    assert read_wire(usual.to_wire(), 10) is None


def test_what_a_trade_counts_for_is_recognised_if_it_is_valid() -> None:
    """Any other text there would reach the log as a trade that is refused."""
    assert read_wire(WIRE.replace(b"}", b',"updates":"volume"}')) is not None
    assert read_wire(WIRE.replace(b"}", b',"updates":"volumes"}')) is None


@pytest.mark.parametrize("name", ["cancels", "corrects"])
def test_what_takes_a_trade_back_is_left_to_the_rules(name: str) -> None:
    """Whatever number it names."""
    for number in (b"1", b"0", b"-1", b'"7"'):
        more = b',"%b":%b}' % (name.encode(), number)
        assert read_wire(WIRE.replace(b"}", more)) is None
