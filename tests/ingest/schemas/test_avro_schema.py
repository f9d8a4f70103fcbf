"""Avro: every digit stays, and what takes no byte has no place."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from ingest.schemas.avro_schema import DEEPEST, AvroSchema, BadSchema
from ingest.schemas.framing import BadValue, framed, unframed

NESTED = '{"type":"array","items":'
MAP = {"type": "map", "values": "null"}
EMPTY = {"type": "record", "name": "E", "fields": []}


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    """Return a record whose fields have these types."""
    named = [{"name": f"f{n}", "type": kind} for n, kind in enumerate(fields)]
    return {"type": "record", "name": name, "fields": named}


def logical(kind: str, name: str, **more: Any) -> dict[str, Any]:
    """Return a logical type."""
    return {"type": kind, "logicalType": name, **more}


def encoded(schema: Any, value: Any) -> bytes:
    """Return a value as the library writes it by itself."""
    stream = BytesIO()
    schemaless_writer(stream, schema, value)
    return stream.getvalue()


def test_what_values_become() -> None:
    """Text, whole numbers and microseconds, whatever the unit; null stays."""
    at = datetime(2026, 3, 20, tzinfo=UTC)
    at_us = 1_773_964_800_000_000
    enum = {"type": "enum", "name": "Side", "symbols": ["BUY", "SELL"]}
    fixed = {"type": "fixed", "name": "D", "size": 8}
    for kind, value, wanted in (
        (logical("long", "timestamp-millis"), at, at_us),
        (logical("long", "timestamp-micros"), at, at_us),
        (logical("bytes", "decimal", precision=9, scale=4), Decimal("-1.5000"), "-1.5"),
        (logical("bytes", "decimal", precision=9), Decimal(1900), "1900"),
        (fixed | logical("fixed", "decimal", precision=9), Decimal(7), "7"),
        (logical("int", "date"), at.date(), 20_532),
        (["null", "string"], None, None),
        (["null", "string"], "x", "x"),
        (enum, "SELL", "SELL"),
        ("bytes", b"\0", b"\0"),
    ):
        schema = record(kind)
        read = AvroSchema(json.dumps(schema)).read(encoded(schema, {"f0": value}))
        assert read == {"f0": wanted}


@given(st.decimals(allow_nan=False, allow_infinity=False, places=18))
def test_a_decimal_has_every_digit(number: Decimal) -> None:
    """Also of more digits than the schema promises, which the library would round."""
    schema = AvroSchema(json.dumps(logical("bytes", "decimal", precision=18, scale=18)))
    unscaled = int(number.scaleb(18).to_integral_value())
    body = unscaled.to_bytes(40, "big", signed=True)
    text = schema.read(encoded("bytes", body))
    assert Decimal(text) == Decimal(f"{unscaled}E-18")
    assert "E" not in text


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": "null"}, "array: a value that takes no byte"),
        ({"type": "array", "items": EMPTY}, "array: a value that takes no byte"),
        (record("int", "null"), "field f1: a value that takes no byte"),
        (record({"type": "fixed", "name": "F", "size": 0}), "field f0"),
        (record(["null", "R"]), "holds itself"),
        ("nothing", "is no schema of Avro: UnknownType"),
        (logical("bytes", "decimal", precision=900, scale=900), "behind the point"),
    ],
)
def test_a_schema_without_a_bound_is_refused(schema: Any, words: str) -> None:
    """Ten bytes would stand for a billion items, or for a value without an end."""
    with pytest.raises(BadSchema, match=words):
        AvroSchema(json.dumps(schema))


def test_a_schema_has_bounds_itself() -> None:
    """In its text, in its depth, and in what names stand for."""
    doubled: Any = record("int", name="R0")
    for n in range(1, DEEPEST):
        doubled = record(doubled, f"R{n - 1}", name=f"R{n}")
    for text in (
        f'"{"x" * 300_000}"',
        NESTED * 900 + '"int"' + "}" * 900,
        json.dumps(doubled),
    ):
        with pytest.raises(BadSchema):
            AvroSchema(text)


def test_a_list_that_promises_too_much_is_refused_at_once() -> None:
    """Each item takes a byte, and there are not as many."""
    a_billion = b"\x80\xa8\xd6\xb9\x07"
    for items in ("int", ["null", "int"], ["null", EMPTY], MAP):
        schema = AvroSchema(json.dumps({"type": "array", "items": items}))
        with pytest.raises(BadValue, match="is no value of its schema"):
            schema.read(a_billion + bytes(40))


NUMBERS = {"type": "array", "items": logical("bytes", "decimal", precision=4)}


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Nothing else comes of them, and nothing of what is behind."""
    schema = AvroSchema(json.dumps(record("string", ["null", "long"], NUMBERS)))
    try:
        value = schema.read(body)
    except BadValue:
        return
    assert len(value["f2"]) <= len(body)
    with pytest.raises(BadValue, match="1 bytes are left"):
        schema.read(body + b"\0")


@given(st.integers(0, 2**32 - 1), st.binary(max_size=20))
def test_a_value_is_framed_and_taken_apart(number: int, body: bytes) -> None:
    """As Confluent does it; what is shorter, or begins otherwise, is refused."""
    value = framed(number, body)
    assert value[:5] == b"\0" + number.to_bytes(4, "big")
    assert unframed(value) == (number, body)
    for bad in (value[:4], b"{" + value[1:], b""):
        with pytest.raises(BadValue, match="must begin with a zero byte"):
            unframed(bad)
