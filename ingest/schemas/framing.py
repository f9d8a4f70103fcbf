"""Confluent's framing of a value: a zero, which schema it has, then its bytes. Pure."""

import struct

_HEAD = struct.Struct(">BI")


class BadValue(ValueError):
    """Bytes that are no value of a schema; the message says why."""


def is_framed(value: bytes) -> bool:
    """Tell whether a value begins as a framed one does; no JSON does."""
    return value[:1] == b"\0"


def framed(schema_id: int, body: bytes) -> bytes:
    """Return a value with the number of its schema in front."""
    return _HEAD.pack(0, schema_id) + body


def unframed(value: bytes) -> tuple[int, bytes]:
    """Return the number of a value's schema, and its bytes. Raises BadValue."""
    if not is_framed(value) or len(value) < _HEAD.size:
        raise BadValue(
            f"begins with {value[: _HEAD.size].hex(' ')}: must begin with a zero byte "
            "and the four of its schema's id"
        )
    return _HEAD.unpack_from(value)[1], value[_HEAD.size :]
