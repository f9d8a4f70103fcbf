"""Broken trades: every kind is refused, every reason occurs."""

from random import Random

import pytest

from ingest.malformed import break_trade
from ingest.trade import REASONS, InvalidTrade, Trade, check_not_ahead

GOOD = Trade("KR7005930003", 1_773_964_804_000_000, 1, "199500", "3").to_wire()


def refusal_of(payload: bytes) -> str:
    """The reason a broken trade is refused for."""
    with pytest.raises(InvalidTrade) as caught:
        check_not_ahead(Trade.from_wire(payload), 1_773_964_804_000_000, 1_000_000)
    return caught.value.reason


def test_every_broken_trade_is_refused_and_every_reason_occurs() -> None:
    """No kind passes, and none of the trade's rules goes unused.

    A user's decoder alone can say that an entry cannot be decoded.
    """
    rng = Random(1)
    found = {refusal_of(break_trade(rng, GOOD)) for _ in range(500)}
    assert found == {*REASONS} - {"not_decoded"}


def test_same_seed_breaks_the_same_way() -> None:
    """What is broken depends on the random numbers alone."""
    first, second = Random(7), Random(7)
    assert [break_trade(first, GOOD) for _ in range(50)] == [
        break_trade(second, GOOD) for _ in range(50)
    ]
