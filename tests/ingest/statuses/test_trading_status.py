"""What a status may say, and what is refused with which words."""

import json
from typing import Any

import pytest

from ingest.statuses.trading_status import (
    MOST_AHEAD_US,
    TradingStatus,
    check_status_not_ahead,
)
from ingest.trade import InvalidTrade
from tickthrottle_client.trade_v1 import JsonNumber

TIME_US = 1_773_964_803_811_204


def make_fields(**changed: Any) -> dict[str, Any]:
    """Return the fields of a halt, changed."""
    return {"isin": "KR7005930003", "status": "halted", "time": TIME_US, **changed}


def test_every_field_comes_back_with_its_digits() -> None:
    fields = make_fields(
        status="auction",
        venue="KRX",
        until=TIME_US + 120_000_000,
        expected_price=JsonNumber("71900.50"),
        expected_size="3",
        reason="정적 VI",
    )
    status = TradingStatus.from_fields(fields)
    text = status.encode().decode()
    assert '"expected_price":71900.50,' in text
    again = json.loads(text, parse_float=JsonNumber)
    assert TradingStatus.from_fields(again) == status
    assert again.keys() == fields.keys()


def test_bands_and_states_take_each_others_place_never() -> None:
    bands = make_fields(status="price_bands", lower="10", upper=20)
    halt, auction = make_fields(), make_fields(status="auction", lower=None)
    slots = [TradingStatus.from_fields(f).slot for f in (bands, halt, auction)]
    assert slots[0] != slots[1] == slots[2]
    of_venue = TradingStatus.from_fields(make_fields(venue="NXT"))
    assert of_venue.slot not in slots


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"isin": "KR7005930004"}, "isin 'KR7005930004': check digit"),
        ({"isin": None}, "isin None: is required"),
        ({"status": "suspended"}, "status 'suspended': must be one of trading, halted"),
        ({"status": ["halted"]}, "status ['halted']: must be one of"),
        ({"time": 1_773_964_803}, "time 1773964803: must be microseconds"),
        ({"expected_price": "1"}, "expected_price '1': only with auction"),
        ({"lower": "1"}, "lower '1': only with price_bands"),
        ({"status": "price_bands"}, "lower None: or upper is required"),
        ({"status": "auction", "expected_price": 1.5}, "expected_price 1.5: must be"),
        ({"status": "auction", "expected_size": "0"}, "must be above zero"),
        ({"until": -1}, "until -1: must be a whole number"),
        ({"venue": "K R X"}, "venue 'K R X': must be 1 to 20"),
        ({"reason": ""}, "reason '': must be text of 1 to 100"),
        ({"reason": "\ud800"}, "must be text of 1 to 100"),
        ({"reason": "x" * 101}, "must be text of 1 to 100"),
        ({"note": 1}, "note 1: is no field of a status"),
    ],
)
def test_a_rule_that_is_broken_is_named(changed: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidTrade) as refused:
        TradingStatus.from_fields(make_fields(**changed))
    assert words in str(refused.value)


def test_a_status_of_the_future_is_refused() -> None:
    """It would be the newest for ever."""
    status = TradingStatus.from_fields(make_fields())
    check_status_not_ahead(status, TIME_US - MOST_AHEAD_US)
    with pytest.raises(InvalidTrade, match="60 s ahead"):
        check_status_not_ahead(status, TIME_US - MOST_AHEAD_US - 1)
