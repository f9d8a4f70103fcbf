"""Avro, with bounds: a value takes no more memory than its bytes can account for. Pure.

Avro has values without a byte, such as null, and lists that say how many there are: ten
bytes would stand for a billion nulls. So what a list holds, and each field of a record,
must take a byte (null as a branch of a union does), and no type may hold itself.

Numbers, text and bytes are Python's. A decimal is text, without the zeros at its end,
which are its scale's. A timestamp of any unit is a whole number of microseconds, as a
trade's ``time`` is. Of other logical types there is what is stored.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from io import BytesIO
from typing import Any

import orjson
from fastavro import parse_schema, schemaless_reader, schemaless_writer
from fastavro.read import LOGICAL_READERS

from ingest.schemas.framing import BadValue

MOST_BYTES = 256 * 1024
"""Longest schema, as text."""

MOST_TYPES = 2_000
"""Most types that a schema may name: a field is one, and each branch of a union."""

DEEPEST = 16
"""So many types may stand within each other."""

MOST_DIGITS = 128
"""Longest decimal, in bytes and in digits behind the point."""


class BadSchema(ValueError):
    """A schema that is not read; the message says why."""


class AvroSchema:
    """A schema by which values are read and written."""

    def __init__(self, text: str) -> None:
        """Take in a schema as JSON. Raises BadSchema."""
        if len(text) > MOST_BYTES:
            raise BadSchema(f"the schema has over {MOST_BYTES} bytes")
        named: dict[str, Any] = {}
        try:
            self._parsed = parse_schema(orjson.loads(text), named)
        except Exception as error:  # noqa: BLE001 - the parser raises what it likes
            raise BadSchema(f"is no schema of Avro: {_told(error)}") from None
        _Bounds(named).settle(self._parsed)

    def read(self, body: bytes) -> Any:
        """Return the value that bytes stand for, all of them. Raises BadValue."""
        stream = BytesIO(body)
        try:
            value = schemaless_reader(stream, self._parsed, None)
        except Exception as error:  # noqa: BLE001 - the bytes are anybody's
            raise BadValue(f"is no value of its schema: {_told(error)}") from None
        if stream.tell() != len(body):
            more = len(body) - stream.tell()
            raise BadValue(f"is no value of its schema: {more} bytes are left")
        return value

    def write(self, value: Any) -> bytes:
        """Return a value's bytes. Raises what a value of another schema causes."""
        stream = BytesIO()
        schemaless_writer(stream, self._parsed, value)
        return stream.getvalue()


class _Bounds:
    """Looks through a schema that was parsed, and puts our logical types into it.

    A type that is named is looked at wherever its name stands.
    """

    def __init__(self, named: Mapping[str, Any]) -> None:
        self._named = named
        self._types = 0

    def settle(self, kind: Any, depth: int = 1) -> bool:
        """Tell whether each value of a type takes a byte. Raises BadSchema."""
        self._types += 1
        if self._types > MOST_TYPES or depth > DEEPEST:
            raise BadSchema(
                f"over {MOST_TYPES} types, over {DEEPEST} within each other, or one "
                "that holds itself: that has no bound"
            )
        if isinstance(kind, list):
            for branch in kind:
                self.settle(branch, depth + 1)
            return True
        if isinstance(kind, str):
            if kind in self._named:
                return self.settle(self._named[kind], depth)
            return kind != "null"
        match kind["type"]:
            case "record" | "error":
                for field in kind["fields"]:
                    if not self.settle(field["type"], depth + 1):
                        raise BadSchema(f"field {field['name']}: {_NO_BYTE}")
                return bool(kind["fields"])
            case "array":
                if not self.settle(kind["items"], depth + 1):
                    raise BadSchema(f"the items of an array: {_NO_BYTE}")
            case "map":
                self.settle(kind["values"], depth + 1)
            case "fixed" if kind["size"] == 0:
                return False
            case "null":
                return False
        _put_logical_type(kind)
        return True


def _put_logical_type(kind: dict[str, Any]) -> None:
    """Have values of a type be converted as we do it, or not at all."""
    logical = str(kind.pop("logicalType", ""))
    name = f"{_OURS}{logical.removeprefix(_OURS).removeprefix('local-')}"
    if f"{kind['type']}-{name}" not in _READERS:
        return
    kind["logicalType"] = name
    if kind.get("scale", 0) > MOST_DIGITS:
        raise BadSchema(f"a decimal of over {MOST_DIGITS} digits behind the point")


def _decimal_text(data: bytes, kind: Mapping[str, Any], _: object = None) -> str:
    if len(data) > MOST_DIGITS:
        raise ValueError(f"a decimal of over {MOST_DIGITS} bytes")
    scale = kind.get("scale", 0)
    unscaled = int.from_bytes(data, "big", signed=True)
    text = f"{Decimal(f'{unscaled}E-{scale}'):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:_LONGEST_TOLD]


_OURS = "tickthrottle-"
_NO_BYTE = "a value that takes no byte has no bound"
_LONGEST_TOLD = 200
_READERS: Mapping[str, Callable[..., Any]] = {
    f"bytes-{_OURS}decimal": _decimal_text,
    f"fixed-{_OURS}decimal": _decimal_text,
    f"long-{_OURS}timestamp-millis": lambda number, *_: number * 1_000,
    f"long-{_OURS}timestamp-nanos": lambda number, *_: number // 1_000,
}
# Under names that are nobody else's, where the library looks for such.
LOGICAL_READERS.update(_READERS)
