"""A registry that is away, refuses, or is none. A real one is in archive/topics."""

import base64
from functools import partial
from typing import Any

import pytest

from ingest.schemas.avro_schema import AvroSchema
from ingest.schemas.framing import BadValue, framed
from ingest.schemas.registry import (
    REMEMBERED_S,
    RegistryAway,
    RegistryRefused,
    SchemaRegistry,
)
from ingest.trade import InvalidTrade, Trade
from tests.ingest.schemas.registry_answers import NOT_FOUND, TRADE, VALUES, answering
from tests.ports import free_port
from throttle.spark.task_log import decode_patiently
from throttle.window.decoder import NoDecoder, decode, find_decoder
from tickthrottle_client.log_v1 import LogAway

OTHER = {"name": "a.B", "subject": "b", "version": 1}


def test_a_schema_is_asked_for_once() -> None:
    """With the password of the address, which is decoded."""
    with answering() as answers:
        answers.status, answers.body = 200, {"schema": '"string"'}
        registry = SchemaRegistry(answers.url)
        assert registry.read(framed(7, b"\x02a")) == "a"
        assert registry.read(framed(7, b"\x02b")) == "b"
    told = base64.b64encode(b"me:s@cret").decode()
    assert answers.asked == [("/schemas/ids/7", f"Basic {told}")]


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (503, {"message": "soon"}, RegistryAway, "soon"),
        (429, {"message": "slow down"}, RegistryAway, "slow down"),
        (
            401,
            {"error_code": 401, "message": "who?"},
            RegistryRefused,
            "access refused",
        ),
        (404, {"detail": "no such page"}, RegistryRefused, "HTTP 404"),
        (200, b"<html>", RegistryRefused, "is none of a schema registry's"),
        (200, [], RegistryRefused, "is none of a schema registry's"),
    ],
)
def test_what_may_pass_and_what_does_not(
    status: int, body: Any, kind: type[Exception], words: str
) -> None:
    """Neither makes a trade a bad one, and no sentence has the password."""
    with answering() as answers:
        answers.status, answers.body = status, body
        with pytest.raises(kind, match=words) as caught:
            SchemaRegistry(answers.url).read(framed(7, b""))
        with pytest.raises(kind):
            decode(framed(7, b""), find_decoder("avro", answers.url))
    assert "cret" not in str(caught.value)


def test_a_batch_waits_while_the_registry_is_away() -> None:
    """None of its trades is refused, and it is read on when the registry is back."""
    with answering() as answers:
        answers.away_times = 2
        answers.status, answers.body = 200, {"schema": TRADE}
        decoder = find_decoder("avro", answers.url)
        value = framed(3, AvroSchema(TRADE).write(VALUES))
        [trade] = decode_patiently(partial(decode, value, decoder))
        assert isinstance(trade, Trade)
        assert len(answers.asked) == 3


def test_a_registry_that_nobody_answers_for_is_away() -> None:
    """It is waited for, and then asked again."""
    url = f"http://me:secret@127.0.0.1:{free_port()}"
    with pytest.raises(
        LogAway, match="no schema registry answers at http://127"
    ) as told:
        SchemaRegistry(url).read(framed(7, b""))
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (*NOT_FOUND, "the registry has none"),
        (200, {"schema": "syntax", "schemaType": "PROTOBUF"}, "is of PROTOBUF"),
        (200, {"schema": '{"type":"array","items":"null"}'}, "takes no byte"),
        (200, {"schema": '"a.B"', "references": [OTHER]}, "refers to schemas"),
    ],
)
def test_a_schema_that_is_not_read_refuses_its_values(
    status: int, body: Any, words: str
) -> None:
    """It is not asked for again with each of them."""
    with answering() as answers:
        answers.status, answers.body = status, body
        registry = SchemaRegistry(answers.url)
        for _ in range(3):
            with pytest.raises(BadValue, match=words):
                registry.read(framed(7, b""))
        assert len(answers.asked) == 1


def test_a_schema_that_is_missing_is_asked_for_again() -> None:
    """After a while: it may be registered by then."""
    now_s = 0.0
    with answering() as answers:
        registry = SchemaRegistry(answers.url, lambda: now_s)
        for wanted in (1, 1, 2):
            with pytest.raises(BadValue, match="the registry has none"):
                registry.read(framed(7, b""))
            assert len(answers.asked) == wanted
            now_s += REMEMBERED_S / 2
        now_s += REMEMBERED_S
        answers.status, answers.body = 200, {"schema": '"string"'}
        assert registry.read(framed(7, b"\x02a")) == "a"


def with_price(record: dict[str, Any]) -> dict[str, Any]:
    """Decode a record as a user's own decoder does."""
    return {**record, "price": record["price"] + "1"}


def test_a_record_with_a_trades_names_is_a_trade() -> None:
    """Without a line of code; a decoder of the user's own is given the record."""
    with answering() as answers:
        answers.status, answers.body = 200, {"schema": TRADE}
        value = framed(3, AvroSchema(TRADE).write(VALUES))
        [trade] = decode(value, find_decoder("avro", answers.url))
        time_us = 1_773_964_804_000_000
        assert trade == Trade("KR7005930003", time_us, 7, "199500.5", "3")
        own = find_decoder(f"avro+{__name__}:with_price", answers.url)
        [trade] = decode(value, own)
        assert isinstance(trade, Trade)
        assert trade.price == "199500.51"
        [refused] = decode(b'{"isin":"KR7005930003"}', own)
        assert isinstance(refused, InvalidTrade)
        assert refused.reason == "not_decoded"
        assert "must begin with a zero byte" in str(refused)


def test_what_is_no_record_is_no_trade() -> None:
    """Nor a name for what is none: anybody's text would be counted under it."""
    with answering() as answers:
        answers.status, answers.body = 200, {"schema": '"string"'}
        [refused] = decode(framed(3, b"\x02a"), find_decoder("avro", answers.url))
        assert isinstance(refused, InvalidTrade)
        assert "is no record" in str(refused)


def test_avro_without_a_registry_is_told() -> None:
    """Before anything is read."""
    with pytest.raises(NoDecoder, match="decoder avro: needs schema_registry_url"):
        find_decoder("avro")
