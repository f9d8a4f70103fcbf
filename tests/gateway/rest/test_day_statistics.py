"""What a quote says of an instrument's day: exact, and null where nothing is known."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import orjson
import pytest

from gateway.rest.day_statistics import LEFT_OUT, encode_day, encode_prices
from ingest.instrument_table.instrument_entry import InstrumentEntry
from tests.gateway.bar_publisher import FIRST_MS, make_bar
from tests.gateway.samples import SAMSUNG
from throttle.contract.bar_intervals import DayBar
from throttle.contract.snapshot import LastValue

ROW = LastValue(SAMSUNG, b"", 1, b'{"price":110.10,"size":1}')
DAY = DayBar(make_bar(prices="100 120 90 110.10"), FIRST_MS, FIRST_MS)


def told(prev_close: str | None, close: str = "110.10") -> dict[str, Any]:
    """Return what is said of the day with a previous close of the table."""
    day = replace(DAY, bar=replace(DAY.bar, close=Decimal(close)))
    entry = InstrumentEntry(SAMSUNG, prev_close=prev_close)
    found: dict[str, Any] = orjson.loads(encode_day(ROW, day, entry))
    return found


def test_an_instrument_without_a_day_has_none() -> None:
    """Null, whatever the table says of it."""
    assert encode_day(ROW, None, InstrumentEntry(SAMSUNG, prev_close="1")) == b"null"


def test_a_day_has_the_figures_of_a_bar() -> None:
    """But for what nobody asks of a day that goes on."""
    day = told("100")
    names = DAY.bar.to_object().keys() - set(LEFT_OUT)
    assert day.keys() == names | {"prev_close", "change", "percent"}
    assert (day["high"], day["trades"]) == (120, 4)


def test_the_change_is_exact() -> None:
    """In decimals: no digit of a binary number shows up."""
    day = encode_day(ROW, DAY, InstrumentEntry(SAMSUNG, prev_close="110.00"))
    assert b'"change":0.1,' in day
    assert told("110.00")["percent"] == 0.0909


@pytest.mark.parametrize("prev_close", [None, "0"])
def test_without_a_previous_close_there_is_no_change(prev_close: str | None) -> None:
    """Nor with one of nought; an instrument that the table lacks has none either."""
    nothing = {"prev_close": None, "change": None, "percent": None}
    assert nothing.items() <= told(prev_close).items()
    assert nothing.items() <= orjson.loads(encode_day(ROW, DAY, None)).items()


def test_a_day_without_a_price_has_no_change() -> None:
    """What is known of it is told."""
    unpriced = replace(DAY, bar=make_bar(prices="- 120 90 -"))
    day = orjson.loads(
        encode_day(ROW, unpriced, InstrumentEntry(SAMSUNG, prev_close="100"))
    )
    assert (day["prev_close"], day["change"], day["percent"]) == (100, None, None)
    assert (day["open"], day["high"], day["volume"]) == (None, 120, 40)
    assert b'"open":null,"high":120,"low":90,"close":null' in encode_prices(unpriced)


def test_a_rate_that_nobody_could_read_is_null() -> None:
    """The change beside it is told all the same."""
    day = told(f"0.{'0' * 80}1", "9" * 26)
    assert day["percent"] is None
    assert day["change"] is not None


def test_in_short_a_day_is_its_span_and_prices() -> None:
    """Prices as decimal text, without an exponent, whatever their size."""
    closes = {"110.10": b"110.1", "1E+3": b"1000", "1E-7": b"0.0000001"}
    for close, shown in closes.items():
        bar = replace(DAY.bar, close=Decimal(close))
        encoded = encode_prices(replace(DAY, bar=bar))
        assert encoded.endswith(b'"low":90,"close":%b}' % shown)
        whole = bar.to_object()
        assert orjson.loads(encoded).keys() == {
            *("isin", "start", "end", "open", "high", "low", "close")
        }
        assert orjson.loads(encoded)["start"] == whole["start"]


def test_the_day_so_far_is_as_of_the_row() -> None:
    """What analytics have of the day is older; it says when the day ends."""
    text = b"%d,412,91700,18291450000,199900,198700,199000" % FIRST_MS
    row = ROW._replace(day=text)
    day = orjson.loads(encode_day(row, DAY, InstrumentEntry(SAMSUNG, prev_close="100")))
    assert (day["start"], day["end"]) == (FIRST_MS, DAY.bar.end_ms)
    assert (day["open"], day["high"], day["low"]) == (199000, 199900, 198700)
    assert (day["close"], day["change"]) == (110.10, 10.1)
    assert (day["trades"], day["volume"], day["value"]) == (412, 91700, 18291450000)
    assert day["vwap"] == 199470.55616
    assert orjson.loads(encode_day(row, None, None))["end"] is None


def test_a_day_that_has_begun_without_a_price_has_no_close() -> None:
    """The row shows a price of the day before."""
    row = ROW._replace(day=b"%d,1,5,500,,," % FIRST_MS)
    day = orjson.loads(encode_day(row, None, None))
    assert (day["open"], day["high"], day["close"]) == (None, None, None)
    assert (day["volume"], day["vwap"]) == (5, 100)


def session(text: str, price: str) -> LastValue:
    """Return the row of the regular session, with its day so far."""
    body = b'{"price":%b,"size":1}' % price.encode()
    return LastValue(f"{SAMSUNG}@regular", b"", 1, body, text.encode())


def test_a_change_is_that_of_the_regular_close() -> None:
    """After it, whatever is traded: the figures of the session are told beside."""
    row = ROW._replace(day=b"1000,9,90,9500,120,90,100")
    entry = InstrumentEntry(SAMSUNG, prev_close="100")
    regular = session("1000,4,40,4200,108,95,101", "105")
    day = orjson.loads(encode_day(row, None, entry, regular))
    assert (day["close"], day["change"], day["percent"]) == (110.1, 5, 5)
    assert day["regular"] == {
        **{"open": 101, "high": 108, "low": 95, "close": 105},
        **{"volume": 40, "value": 4200, "trades": 4},
    }


def test_before_the_regular_session_of_a_day_there_is_none() -> None:
    """That of the day before is not today's: the change is that of the price."""
    row = ROW._replace(day=b"2000,9,90,9500,120,90,100")
    entry = InstrumentEntry(SAMSUNG, prev_close="100")
    before = session("1000,4,40,4200,108,95,101", "105")
    day = orjson.loads(encode_day(row, None, entry, before))
    assert "regular" not in day
    assert day["change"] == 10.1
