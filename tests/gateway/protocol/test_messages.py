"""What a client may say in tick.v1."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.protocol.messages import (
    BadMessage,
    ListKeys,
    Ping,
    Rejection,
    Since,
    Subscribe,
    Unsubscribe,
    check_key,
    parse,
    read_id,
    split_keys,
    split_list,
)
from ingest.instrument_table.known_instruments import MAX_GROUP_CHARS, Instruments
from tests.gateway.samples import HYNIX, LISTED, SAMSUNG
from tickthrottle_client.tick_v1 import CloseCode


def said(**message: Any) -> str:
    """Return a message as text."""
    return json.dumps(message)


def test_a_subscribe_has_sensible_defaults() -> None:
    """Without further fields a client gets a full snapshot; repeated keys are one."""
    text = said(op="subscribe", id=1, keys=[SAMSUNG, "*", SAMSUNG])
    assert parse(text) == Subscribe(1, (SAMSUNG, "*"), True, None, 0)


def test_a_subscribe_may_say_how() -> None:
    """Snapshot, position and interval are read; unknown fields are ignored."""
    text = said(
        op="subscribe",
        id="a",
        keys=["*"],
        snapshot=False,
        since={"epoch": "k", "offset": 12},
        min_interval_ms=4000,
        colour="green",
    )
    assert parse(text) == Subscribe("a", ("*",), False, Since("k", 12), 4000)


def test_a_client_that_saw_nothing_yet_has_no_position() -> None:
    """A position without an epoch is that of a client that saw no window."""
    cases: list[Any] = [None, {"epoch": None, "offset": 0}]
    for since in cases:
        command = parse(said(op="subscribe", keys=["*"], since=since))
        assert command == Subscribe(None, ("*",))


def test_the_other_messages_are_read() -> None:
    """Unsubscribe, list and ping; the id is optional."""
    assert parse(said(op="unsubscribe", keys=["x"])) == Unsubscribe(None, ("x",))
    assert parse(said(op="list", id=3)) == ListKeys(3)
    assert parse(said(op="ping", id="p" * 36)) == Ping("p" * 36)


def test_what_is_not_a_json_object_is_refused() -> None:
    """bad_json, whatever it is."""
    cases: list[str] = ["", "{", "[]", "1", '"x"', "[" * 5000, "nul"]
    for text in cases:
        with pytest.raises(BadMessage) as caught:
            parse(text)
        assert (caught.value.code, caught.value.message_id) == ("bad_json", None)


def test_a_bad_field_is_named() -> None:
    """bad_request says which field, and keeps the id for the answer."""
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "op"),
        ({"op": "buy"}, "op"),
        ({"op": ["subscribe"]}, "op"),
        ({"op": "subscribe"}, "keys"),
        ({"op": "subscribe", "keys": []}, "keys"),
        ({"op": "subscribe", "keys": "*"}, "keys"),
        ({"op": "unsubscribe", "keys": ["*", 5]}, "keys"),
        ({"op": "subscribe", "keys": ["*"], "snapshot": 1}, "snapshot"),
        ({"op": "subscribe", "keys": ["*"], "min_interval_ms": -1}, "min_interval_ms"),
        ({"op": "subscribe", "keys": ["*"], "min_interval_ms": 1.5}, "min_interval_ms"),
        (
            {"op": "subscribe", "keys": ["*"], "min_interval_ms": True},
            "min_interval_ms",
        ),
        ({"op": "subscribe", "keys": ["*"], "since": 12}, "since"),
        ({"op": "subscribe", "keys": ["*"], "since": {"epoch": "k"}}, "since"),
        (
            {"op": "subscribe", "keys": ["*"], "since": {"epoch": 1, "offset": 1}},
            "since.epoch",
        ),
        (
            {"op": "subscribe", "keys": ["*"], "since": {"epoch": "k", "offset": -1}},
            "since.offset",
        ),
        ({"op": "auth"}, "token"),
        ({"op": "auth", "token": 1}, "token"),
    ]
    for fields, named in cases:
        with pytest.raises(BadMessage, match=f"^{named}: ") as caught:
            parse(said(id=7, **fields))
        assert (caught.value.code, caught.value.message_id) == ("bad_request", 7)


def test_a_bad_id_is_named_and_not_echoed() -> None:
    """An id that is no integer or short text cannot be answered to."""
    cases: list[Any] = [1.5, True, [1], {}, "p" * 37]
    for bad_id in cases:
        with pytest.raises(BadMessage, match=r"^id: ") as caught:
            parse(said(op="ping", id=bad_id))
        assert caught.value.message_id is None


def test_the_id_of_a_refused_message_is_read_if_it_can_be() -> None:
    """A client can match even the refusal of a message nobody looked into."""
    assert read_id(said(op="ping", id=4)) == 4
    assert read_id(said(op="nonsense", id=5)) == 5
    assert read_id("nonsense") is None


@given(st.text() | st.from_regex(r'\{"op": ?"subscribe", ?"keys": ?\[.{0,20}\]\}'))
def test_no_text_breaks_the_parser(text: str) -> None:
    """Whatever arrives is a command or a BadMessage."""
    with suppress(BadMessage):
        parse(text)


def test_an_isin_or_the_star_is_accepted() -> None:
    """Valid keys have no objection."""
    cases: list[str] = [SAMSUNG, HYNIX, "US0378331005", "*"]
    for key in cases:
        assert check_key(key) is None


def test_a_key_that_cannot_be_watched_says_why() -> None:
    """The reason is one the client can act on."""
    cases: list[tuple[str, str, str]] = [
        ("KR7005930004", "bad_isin", "check digit is 3"),
        ("kr7005930003", "bad_isin", "must be 2 capitals"),
        ("KR700593000X", "bad_isin", "1 check digit"),
        ("market:KOSPI", "unknown_key", "the market of no instrument"),
        ("sector:Semiconductors", "unknown_key", "the sector of no instrument"),
        ("000660", "unknown_key", "ask by ISIN"),
        ("", "unknown_key", "neither an ISIN nor"),
        ("**", "unknown_key", "neither an ISIN nor"),
        ("KR70059300030", "unknown_key", "neither an ISIN nor"),
    ]
    for key, code, message in cases:
        rejection = check_key(key)
        assert rejection is not None
        assert (rejection.key, rejection.code) == (key, code)
        assert message in rejection.message


def test_markets_may_be_asked_for_before_the_table_is_there() -> None:
    """Names that nobody could have are refused all the same."""
    long = "sector:" + "x" * MAX_GROUP_CHARS
    accepted, rejected = split_keys(["market:X", "sector:Y", long], Instruments())
    assert accepted == ["market:X", "sector:Y"]
    assert [r.key for r in rejected] == [long]


def test_a_comma_in_a_name_has_a_backslash_before_it() -> None:
    """Whatever else is written stays as it is."""
    text = "market:KOSPI,,sector:Food\\, drink,market:KOSPI,a\\b,"
    names = ("market:KOSPI", "sector:Food, drink", "a\\b")
    assert split_list(text) == names


def test_one_bad_key_does_not_spoil_the_rest() -> None:
    """Good and bad keys are sorted out, each in the order given."""
    keys = ["000660", SAMSUNG, "market:X", "nope", "market:KOSPI", "*"]
    accepted, rejected = split_keys(keys, LISTED)
    assert accepted == [SAMSUNG, "market:KOSPI", "*"]
    assert [r.key for r in rejected] == ["000660", "market:X", "nope"]
    assert Rejection("k", "c", "m").to_wire() == {
        "key": "k",
        "code": "c",
        "message": "m",
    }


def test_close_codes_are_those_of_the_protocol() -> None:
    """Clients decide by the number whether to come back."""
    assert {code.value for code in CloseCode} == {
        *(1000, 1003, 1007, 1008, 1009, 1011, 1012, 1013),
        *(4401, 4408, 4429, 4500, 4501),
    }
