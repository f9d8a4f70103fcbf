"""The value of a record: a JSON object, or a record of Avro with the same names. Pure.

Times are whole numbers since 1970: milliseconds, or microseconds where the column has
them (``time``, ``published``). Numbers have every digit: of Avro's types only text has
those of any sum, and the zeros of a price as it was published.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import orjson
import pyarrow as pa
import pyarrow.compute as pc

from archive.parquet.bar_table import BARS, PRICES, SUMS
from archive.parquet.tables import AMOUNTS, ROWS, WINDOWS, exact_digits
from ingest.schemas.framing import framed

if TYPE_CHECKING:
    # An extra: who writes JSON needs no Avro.
    from ingest.schemas.avro_schema import AvroSchema

WINDOW_TOPIC, ROW_TOPIC, LATEST_TOPIC, BAR_TOPIC = "windows", "rows", "latest", "bars"
"""What follows the prefix and a dot in the name of a topic."""

_DECIMALS = frozenset(("price", "size", *AMOUNTS, "prev_close", *PRICES, *SUMS))
_ROW_NAMES = tuple(
    name for name in ROWS.names if not name.endswith("_text") and name != "position"
)
_COLUMNS: Mapping[str, tuple[str, pa.Schema, Sequence[str]]] = {
    WINDOW_TOPIC: ("Window", WINDOWS, WINDOWS.names),
    ROW_TOPIC: ("Row", ROWS, _ROW_NAMES),
    LATEST_TOPIC: ("Row", ROWS, _ROW_NAMES),
    BAR_TOPIC: ("Bar", BARS, BARS.names),
}
_AVRO_TYPES: Mapping[pa.DataType, Any] = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int32(): "int",
    pa.int64(): "long",
    pa.timestamp("ms", "UTC"): {"type": "long", "logicalType": "timestamp-millis"},
    pa.timestamp("us", "UTC"): {"type": "long", "logicalType": "timestamp-micros"},
}
_ROW_ALWAYS = "isin", "window", "epoch", "offset", "time", "seq", "trades", "listed"
_ALWAYS_SAID: Mapping[str, Collection[str]] = {
    WINDOW_TOPIC: WINDOWS.names,
    ROW_TOPIC: _ROW_ALWAYS,
    LATEST_TOPIC: _ROW_ALWAYS,
    BAR_TOPIC: {*BARS.names} - _DECIMALS,
}


class ValueForm(Protocol):
    """How values are written. A line's ``bodies`` are the same in several topics."""

    def bodies(self, topic: str, table: pa.Table) -> Iterator[bytes]: ...

    def framed(self, topic: str, body: bytes) -> bytes: ...


class JsonValues(ValueForm):
    """A JSON object each, without what is null."""

    def bodies(self, topic: str, table: pa.Table) -> Iterator[bytes]:
        _, _, names = _COLUMNS[topic]
        members = [_members(table, name) for name in names]
        for said in zip(*members, strict=True):
            yield f"{{{','.join(filter(None, said))}}}".encode()

    def framed(self, topic: str, body: bytes) -> bytes:
        return body


class AvroValues(ValueForm):
    """Avro in Confluent's framing, by each topic's schema and its number."""

    def __init__(self, schemas: Mapping[str, "tuple[int, AvroSchema]"]) -> None:
        self._schemas = schemas

    def bodies(self, topic: str, table: pa.Table) -> Iterator[bytes]:
        _, _, names = _COLUMNS[topic]
        write = self._schemas[topic][1].write
        columns = (
            exact_digits(table, name).to_pylist()
            if name in _DECIMALS
            else plain(table[name])
            for name in names
        )
        for values in zip(*columns, strict=True):
            yield write(dict(zip(names, values, strict=True)))

    def framed(self, topic: str, body: bytes) -> bytes:
        return framed(self._schemas[topic][0], body)


def avro_schema_of(topic: str) -> str:
    """Return the schema of a topic's records. What may be unsaid is null."""
    record, columns, names = _COLUMNS[topic]
    fields: list[dict[str, Any]] = []
    for name in names:
        kind = columns.field(name).type
        avro = "string" if name in _DECIMALS else _AVRO_TYPES[kind]
        if name in _ALWAYS_SAID[topic]:
            fields.append({"name": name, "type": avro})
        else:
            fields.append({"name": name, "type": ["null", avro], "default": None})
    described = {"type": "record", "name": record, "namespace": "tickthrottle"}
    return orjson.dumps({**described, "fields": fields}).decode()


def _members(table: pa.Table, name: str) -> list[str | None]:
    """Return a column as members of JSON objects, None where it is null."""
    head, column = f'"{name}":', table[name]
    if name in _DECIMALS:
        values = exact_digits(table, name).to_pylist()
    elif pa.types.is_boolean(column.type):
        values = pc.if_else(column, "true", "false").to_pylist()
    elif pa.types.is_string(column.type) and name != "fields":
        members = {
            text: f"{head}{orjson.dumps(text).decode()}"
            for text in pc.unique(column).to_pylist()
            if text is not None
        }
        return list(map(members.get, column.to_pylist()))
    else:
        # Whole numbers; the feed's further fields are JSON already.
        values = plain(column)
    return [None if value is None else f"{head}{value}" for value in values]


def plain(column: pa.ChunkedArray) -> list[Any]:
    """Return a column's values; times are whole numbers."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    values: list[Any] = column.to_pylist()
    return values
