"""The trade: every rule that accepts, refuses or encodes one."""

import json
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ingest.trade import (
    EARLIEST_TIME_US,
    LATEST_TIME_US,
    MAX_PAYLOAD_BYTES,
    MAX_SEQ,
    REASONS,
    REQUIRED,
    InvalidTrade,
    Trade,
    check_isin,
    check_not_ahead,
)
from tests.ingest.strategies import isins, json_values, number_texts, trades

GOOD = {
    "isin": "KR7005930003",
    "time": 1_773_964_804_123_456,
    "seq": 17,
    "price": "199500",
    "size": "3",
}


def make_fields(**changes: Any) -> dict[str, Any]:
    """A valid trade's fields with some of them changed."""
    return {**GOOD, **changes}


def refusal(payload: bytes) -> InvalidTrade:
    """The error a payload is refused with."""
    with pytest.raises(InvalidTrade) as caught:
        Trade.from_wire(payload)
    return caught.value


def field_refusal(**changes: Any) -> InvalidTrade:
    """The error a valid trade with changed fields is refused with."""
    with pytest.raises(InvalidTrade) as caught:
        Trade.from_fields(make_fields(**changes))
    return caught.value


def accepted(build: Callable[[], Trade]) -> Trade | None:
    """The trade, or None when it is refused for a reason that is known."""
    try:
        return build()
    except InvalidTrade as error:
        if error.reason not in REASONS:
            raise
        return None


@given(trades)
def test_trade_survives_the_wire(trade: Trade) -> None:
    """What was encoded for the log decodes to an equal trade with equal bytes."""
    assert Trade.from_wire(trade.to_wire()) == trade
    assert Trade.from_wire(trade.to_wire()).to_wire() == trade.to_wire()


@given(trades)
def test_row_has_the_decimal_text_that_arrived(trade: Trade) -> None:
    """A row for clients is JSON whose price and size are numbers of the same text."""
    row = json.loads(trade.to_row(), parse_float=str, parse_int=str)
    assert (row["price"], row["size"]) == (trade.price, trade.size)
    assert (row["isin"], row["time"]) == (trade.isin, str(trade.time_us))
    assert orjson.loads(trade.to_row()).keys() == {*REQUIRED, *trade.extra}


@given(st.binary(max_size=300))
def test_any_bytes_are_a_trade_or_refused(payload: bytes) -> None:
    """Decoding raises InvalidTrade with a known reason, never anything else."""
    assert refusal(payload).reason in REASONS


@given(
    st.sampled_from([*REQUIRED, "venue"]),
    json_values,
    st.sampled_from([None, *REQUIRED]),
)
def test_changed_trade_is_accepted_whole_or_refused(
    name: str, value: Any, removed: str | None
) -> None:
    """A trade with any JSON value in any field is refused or encodes both ways."""
    fields = make_fields(**{name: value})
    fields.pop(removed, None)
    trade = accepted(lambda: Trade.from_wire(orjson.dumps(fields)))
    if trade:
        assert Trade.from_wire(trade.to_wire()) == trade
        assert orjson.loads(trade.to_row())["isin"] == trade.isin


@given(st.data())
def test_damaged_bytes_are_a_trade_or_refused(data: st.DataObject) -> None:
    """One byte changed or cut never raises anything but InvalidTrade."""
    payload = bytearray(orjson.dumps(make_fields(price=0.3)))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    trade = accepted(lambda: Trade.from_wire(bytes(payload)))
    if trade:
        assert Trade.from_wire(trade.to_wire()) == trade


@given(
    st.dictionaries(
        st.text(max_size=3), st.integers() | st.floats() | st.text(), max_size=3
    )
)
def test_fields_of_any_source_encode_once_accepted(fields: dict[str, Any]) -> None:
    """Surrogates, NaN and integers over 64 bits are refused before they are encoded."""
    trade = accepted(lambda: Trade.from_fields({**fields, **GOOD}))
    if trade:
        assert Trade.from_wire(trade.to_wire()) == trade
        assert trade.to_row()


@given(
    st.dictionaries(st.sampled_from("abc"), number_texts, min_size=1),
    st.sampled_from(["", " ", "\t\n"]),
)
@example({"a": "1.10", "b": "1234567890123456789012345678901234567890"}, "")
@example({"a": "-0", "b": "0"}, " ")
def test_numbers_of_further_fields_leave_as_they_came(
    numbers: dict[str, str], blank: str
) -> None:
    """Digit for digit, to the log and to clients, however long they are."""
    more = "".join(f',{blank}"{name}":{blank}{n}' for name, n in numbers.items())
    trade = Trade.from_wire(orjson.dumps(GOOD)[:-1] + more.encode() + b"}")
    for encoded in (trade.to_wire(), trade.to_row()):
        found = json.loads(encoded, parse_float=str, parse_int=str)
        assert {name: found[name] for name in numbers} == numbers
        assert all(f'"{name}":{n}'.encode() in encoded for name, n in numbers.items())


def test_a_name_that_breaks_a_rule_does_not_make_the_message_long() -> None:
    """What is kept of a refusal is bounded, whatever the sender calls its fields."""
    payload = orjson.dumps(make_fields(**{"n" * 10_000: [1]}))
    assert len(str(refusal(payload))) < 300
    assert len(str(refusal(b"x" * MAX_PAYLOAD_BYTES))) < 300


@pytest.mark.parametrize("text", ["0.30", "199500", "1.000000000000000000", "0.1"])
@pytest.mark.parametrize("quote", ["", '"'], ids=["number", "string"])
def test_price_text_is_exact(text: str, quote: str) -> None:
    """A price arrives as JSON string or number and leaves as the same text."""
    payload = orjson.dumps(GOOD).replace(b'"199500"', f"{quote}{text}{quote}".encode())
    trade = Trade.from_wire(payload)
    assert trade.price == text
    assert f'"price":{text},"size":3'.encode() in trade.to_row()


def test_fractional_price_and_integer_size_are_both_exact() -> None:
    """A JSON number beside a fractional one keeps its text as well."""
    payload = orjson.dumps(make_fields(size=10**17)).replace(b'"199500"', b"0.10")
    trade = Trade.from_wire(payload)
    assert (trade.price, trade.size) == ("0.10", "100000000000000000")


def test_duplicate_keys_take_the_last_value() -> None:
    """Both ways of reading a number agree on which of two equal keys counts."""
    head, tail = b'{"price":1.10,"size":"9",', orjson.dumps(GOOD)[1:]
    assert Trade.from_wire(head + tail).price == "199500"
    tail = tail.replace(b'"price":"199500"', b'"price":2.20')
    assert Trade.from_wire(head + tail).price == "2.20"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "empty"),
        (b" ", "not_json"),
        (b"NaN", "not_json"),
        (b"null", "not_object"),
        (b"[1]", "not_object"),
        (b"0.5", "not_object"),
        pytest.param(b'"\xff"', "not_json", id="no text"),
        (b'{"isin":"\\ud800"}', "not_json"),
        (b"[" * 5_000, "not_json"),
        (b'{"price":0.1,"deep":' + b"[" * 1_000 + b"]" * 1_000 + b"}", None),
        (b" " * (MAX_PAYLOAD_BYTES + 1), "too_large"),
        (b" " * MAX_PAYLOAD_BYTES, "not_json"),
        (b'{"price":NaN}', "not_json"),
        (b'{"price":1e999}', "not_json"),
    ],
)
def test_payload_that_is_no_trade_is_refused(
    payload: bytes, reason: str | None
) -> None:
    """Broken JSON, other JSON, deep nesting and size each have their reason."""
    assert refusal(payload).reason in ((reason,) if reason else REASONS)


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [None, ""])
def test_missing_field_is_named(name: str, value: str | None) -> None:
    """A required field that is absent, null or empty is refused by its name."""
    error = field_refusal(**{name: value})
    assert (error.reason, error.field) == ("missing_field", name)
    fields = make_fields()
    del fields[name]
    assert refusal(orjson.dumps(fields)).field == name


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("isin", "KR7005930004"),
        ("isin", "KR7005930003 "),
        ("isin", "005930"),
        ("isin", "K\u0660 7005930003"),
        ("time", EARLIEST_TIME_US - 1),
        ("time", LATEST_TIME_US),
        ("time", 1_773_964_804),
        ("time", 1.5),
        ("seq", -1),
        ("seq", MAX_SEQ + 1),
        ("seq", 2.0),
        ("seq", True),
        ("seq", "01"),
        ("seq", "\u0661"),
        ("price", "-100"),
        ("price", 0),
        ("price", "0.000"),
        ("price", 0.3),
        ("price", "n/a"),
        ("price", "1e5"),
        ("price", "01"),
        ("price", ".5"),
        ("price", "5\n"),
        ("price", "1,000"),
        ("price", "1" * 19),
        ("price", "0." + "1" * 19),
        ("price", 10**18),
        ("size", "0"),
        ("size", {}),
    ],
)
def test_bad_value_is_refused_by_its_field(name: str, value: object) -> None:
    """Each required field refuses what is not exactly of its form."""
    error = field_refusal(**{name: value})
    assert (error.reason, error.field) == (f"bad_{name}", name)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trades", 3),
        ("depth", {"ask": 1}),
        ("venue", "\ud800"),
        ("ven\udfffue", "KRX"),
        ("change", float("nan")),
        ("cum_value", 2**64),
        ("cum_value", -(2**63) - 1),
    ],
)
def test_field_that_cannot_go_out_is_refused(name: str, value: object) -> None:
    """A further field must be a scalar that encodes, under a name that is free."""
    assert field_refusal(**{name: value}).reason == "bad_field"


def test_value_without_a_name_is_refused() -> None:
    """A row with more values than names is refused."""
    with pytest.raises(InvalidTrade, match="without a name"):
        Trade.from_fields({**GOOD, None: ["surplus"]})  # type: ignore[dict-item]


def test_refusal_says_field_value_and_rule() -> None:
    """The message names what is wrong and what is right; a long value is cut."""
    error = field_refusal(isin="KR7005930004")
    assert str(error) == "isin 'KR7005930004': check digit is 3"
    long = field_refusal(price="9" * 500)
    assert str(long).startswith("price '999")
    assert len(str(long)) < 200


@given(isins)
def test_isin_with_its_check_digit_is_accepted(isin: str) -> None:
    """Any country and number pass with the right digit, none with a wrong one."""
    assert check_isin(isin) == isin
    wrong = isin[:-1] + str((int(isin[-1]) + 1) % 10)
    with pytest.raises(InvalidTrade, match=f"check digit is {isin[-1]}"):
        check_isin(wrong)


def test_stamp_ahead_of_the_log_is_refused() -> None:
    """A trade may be stamped up to the limit ahead of its append time, not beyond."""
    trade = Trade.from_fields(GOOD)
    check_not_ahead(trade, trade.time_us - 1_000, 1_000)
    with pytest.raises(InvalidTrade) as caught:
        check_not_ahead(trade, trade.time_us - 1_001, 1_000)
    assert caught.value.reason == "future_time"


CANCEL = {"isin": GOOD["isin"], "time": GOOD["time"], "cancels": 17}


def test_an_entry_that_cancels_a_trade_is_none() -> None:
    """It may have a number and further fields of its own."""
    entry = Trade.from_fields({**CANCEL, "seq": 18, "why": "erroneous"})
    assert (entry.is_trade, entry.takes_back, entry.version) == (
        *(False, 17),
        (GOOD["time"], 18),
    )
    assert Trade.from_wire(entry.to_wire()) == entry
    assert Trade.from_fields(CANCEL).seq == 17
    assert b'"price"' not in entry.to_wire()


@pytest.mark.parametrize("empty", ["", None])
def test_a_row_of_a_table_has_both_columns(empty: str | None) -> None:
    """An empty one says nothing."""
    of_trade = Trade.from_fields({**GOOD, "cancels": empty, "corrects": empty})
    assert of_trade == Trade.from_fields(GOOD)
    nothing = dict.fromkeys(("price", "size", "seq", "corrects", "updates"), empty)
    assert Trade.from_fields({**CANCEL, **nothing}) == Trade.from_fields(CANCEL)


def test_a_trade_that_corrects_another_one_is_a_trade() -> None:
    """The number is one, whichever way it was written."""
    for number in (3, "3"):
        trade = Trade.from_fields(make_fields(corrects=number))
        assert (trade.is_trade, trade.takes_back) == (True, 3)
        assert Trade.from_wire(trade.to_wire()) == trade


@pytest.mark.parametrize(
    ("changes", "reason", "field"),
    [
        ({"price": "1"}, "bad_field", "price"),
        ({"size": 0}, "bad_field", "size"),
        ({"corrects": 3}, "bad_field", "corrects"),
        ({"updates": "last"}, "bad_field", "updates"),
        ({"cancels": -1}, "bad_field", "cancels"),
        ({"cancels": 1.5}, "bad_field", "cancels"),
        ({"cancels": 2**63}, "bad_field", "cancels"),
        ({"isin": "KR7005930004"}, "bad_isin", "isin"),
        ({"isin": ""}, "missing_field", "isin"),
        ({"time": None}, "missing_field", "time"),
        ({"seq": -1}, "bad_seq", "seq"),
        ({"revision": 1}, "bad_field", "revision"),
    ],
)
def test_a_cancel_that_breaks_a_rule_is_refused(
    changes: dict[str, Any], reason: str, field: str
) -> None:
    with pytest.raises(InvalidTrade) as caught:
        Trade.from_fields({**CANCEL, **changes})
    assert (caught.value.reason, caught.value.field) == (reason, field)


@pytest.mark.parametrize("number", [-1, "x", 2**63])
def test_a_correction_that_names_no_number_is_refused(number: object) -> None:
    assert field_refusal(corrects=number).field == "corrects"
