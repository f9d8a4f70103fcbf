"""Entries of another form than the project's JSON: the user's own decoder.

A decoder is a function that is given an entry's bytes and says what the entry holds:

- the fields of a trade, a mapping as ``Trade.from_fields`` takes it;
- several of them, as anything that can be iterated over, in their order;
- or no trade at all: text, the name under which such entries are counted.

Whatever it raises refuses the entry. Values that are framed by a schema registry's
rules are taken apart before: ``avro`` is for records with the names of a trade's
fields, ``avro+package.module:function`` gives each record to the function. While the
registry is away nothing is refused. Numbers may have exponents. What has no ISIN gets
a key by ``tickthrottle_client.key_of``.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pkgutil import resolve_name
from typing import Any

from ingest.decimals import decimal_of, whole_number
from ingest.process.packages import PACKAGES
from ingest.trade import MAX_ENTRY_BYTES, InvalidTrade, Trade
from tickthrottle_client.log_v1 import LogError
from tickthrottle_client.taking_back_v1 import CANCELS, CORRECTS

Fields = Mapping[str, Any]
Decoder = Callable[[Any], Fields | Iterable[Fields] | str]
"""Of an entry's bytes, or of the record that they stand for."""

AVRO = "avro"

MOST_TRADES = 1_000
"""Most trades that one entry may hold."""

OTHER = "other"
"""The name of what is skipped under more names than are counted."""

MOST_NAMES = 32
"""Most names that a task counts skipped entries by."""

_LONGEST_RULE = 300
_SKIP_NAME = re.compile(r"[a-z0-9_]{1,32}", re.ASCII)


class NoDecoder(ValueError):
    """The decoder that was named cannot be had; the message says why."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """An entry that is no trade; ``name`` is the decoder's word for such entries."""

    name: str


Judged = Trade | InvalidTrade | Skipped
"""What became of an entry, or of one of its trades."""


@lru_cache(maxsize=4)
def find_decoder(name: str, registry_url: str = "") -> Decoder | None:
    """Return the decoder ``package.module:function``, None for no name.

    Schemas are those of the registry. Raises NoDecoder.
    """
    if not name:
        return None
    form, _, of_records = name.partition("+")
    if form == AVRO:
        if not registry_url:
            raise NoDecoder(
                f"decoder {name}: needs schema_registry_url, the address of the "
                "registry that has the schemas"
            )
        return _avro_decoder(registry_url, find_decoder(of_records))
    package = name.partition(":")[0].partition(".")[0]
    if package in PACKAGES:
        raise NoDecoder(
            f"decoder {name}: {package} is a package of tickthrottle, which would hide "
            "yours: give it another name"
        )
    try:
        function = resolve_name(name)
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        raise NoDecoder(f"decoder {name}: {_told(error)}") from None
    if not callable(function):
        raise NoDecoder(f"decoder {name}: is not a function")
    decoder: Decoder = function
    return decoder


def _avro_decoder(registry_url: str, decoder: Decoder | None) -> Decoder:
    # An extra, that takes a second to load.
    from ingest.schemas.registry import open_registry

    read = open_registry(registry_url).read

    def decode_value(payload: bytes) -> Any:
        record = read(payload)
        if decoder is not None:
            return decoder(record)
        if not isinstance(record, dict):
            raise ValueError("is no record: its schema is of another type")
        return {name: value for name, value in record.items() if value is not None}

    return decode_value


def decode(
    payload: bytes, decoder: Decoder | None, max_bytes: int = MAX_ENTRY_BYTES
) -> Sequence[Judged]:
    """Return what an entry holds: its trades in order, or why it is none.

    Raises LogError where what the decoder needs is away, or cannot be used; nothing
    else. Without a decoder it is a trade in the project's own form. An entry of more
    than ``max_bytes``, or without a byte, does not get to the decoder. A trade that a
    decoder made is as good as one read from JSON. If an entry holds several, each that
    breaks a rule is refused alone.
    """
    try:
        if len(payload) > max_bytes:
            rule = f"over {max_bytes} bytes"
            raise InvalidTrade("too_large", "trade", len(payload), rule)
        if decoder is None or not payload:
            return [Trade.from_wire(payload)]
        try:
            decoded = decoder(payload)
            if isinstance(decoded, str):
                return [_skipped(decoded)]
            found = _listed(decoded)
        except LogError:
            raise
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
            raise InvalidTrade("not_decoded", "trade", payload, _told(error)) from None
        if not found:
            rule = "is decoded to nothing; return a name for what is no trade"
            raise InvalidTrade("not_decoded", "trade", payload, rule)
        if len(found) > MOST_TRADES:
            rule = f"holds more than {MOST_TRADES} trades"
            raise InvalidTrade("too_large", "trade", payload, rule)
    except InvalidTrade as error:
        return [_bare(error)]
    return [_judge(fields, payload) for fields in found]


def _listed(decoded: Any) -> list[Any]:
    if isinstance(decoded, Mapping):
        return [decoded]
    if isinstance(decoded, Iterable) and not isinstance(decoded, bytes | bytearray):
        return list(islice(decoded, MOST_TRADES + 1))
    return [None]


def _judge(decoded: Any, payload: bytes) -> Judged:
    try:
        if not isinstance(decoded, Mapping):
            rule = "is not a mapping of fields"
            raise InvalidTrade("not_object", "trade", payload, rule)
        fields = dict(decoded)
        for name in ("price", "size"):
            if name in fields:
                fields[name] = decimal_of(name, fields[name])
        for name in ("time", "seq", CANCELS, CORRECTS):
            if name in fields:
                fields[name] = whole_number(fields[name])
        return Trade.from_wire(Trade.from_fields(fields).to_wire())
    except InvalidTrade as error:
        return _bare(error)
    except Exception as error:  # noqa: BLE001 - values may only look like text
        return _bare(InvalidTrade("not_decoded", "trade", payload, _told(error)))


def _skipped(name: str) -> Skipped:
    if not _SKIP_NAME.fullmatch(name):
        raise ValueError(
            f"{name[:40]!r}: a name for what is no trade has 1 to 32 of a-z, 0-9 and _"
        )
    return Skipped(name)


def _bare(error: InvalidTrade) -> InvalidTrade:
    """Return an error that holds nothing: its traceback would hold every payload."""
    error.__context__ = None
    return error.with_traceback(None)


def _told(error: Exception) -> str:
    """Return what an error says, as short text that can be stored anywhere."""
    text = f"{type(error).__name__}: {error}"[:_LONGEST_RULE]
    return text.encode("utf-8", "backslashreplace").decode()
