"""Entries of another form than the project's JSON: the user's own decoder.

A decoder is a function that is given an entry's bytes and returns the fields of a
trade, as ``Trade.from_fields`` takes them. Whatever it raises refuses the entry.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from ingest.trade import InvalidTrade, Trade

Decoder = Callable[[bytes], Mapping[str, Any]]

_LONGEST_RULE = 300


class NoDecoder(ValueError):
    """The decoder that was named cannot be had; the message says why."""


@lru_cache(maxsize=4)
def find_decoder(name: str) -> Decoder | None:
    """Return the decoder ``package.module:function``, None for no name.

    Raises NoDecoder.
    """
    if not name:
        return None
    try:
        found = resolve_name(name)
    except Exception as error:  # noqa: BLE001 - the user's module may raise anything
        raise NoDecoder(f"decoder {name}: {_told(error)}") from None
    if not callable(found):
        raise NoDecoder(f"decoder {name}: is not a function")
    decoder: Decoder = found
    return decoder


def decode(payload: bytes, decoder: Decoder | None) -> Trade:
    """Return the trade an entry holds. Raises InvalidTrade, and nothing else.

    A trade that a decoder made is as good as one read from JSON: it can be encoded,
    and is not larger than a payload may be.
    """
    if decoder is None or not payload:
        return Trade.from_wire(payload)
    try:
        found = decoder(payload)
        fields = dict(found) if isinstance(found, Mapping) else None
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything
        raise InvalidTrade("not_decoded", "trade", payload, _told(error)) from None
    if fields is None:
        raise InvalidTrade("not_object", "trade", payload, "is no mapping of fields")
    try:
        return Trade.from_wire(Trade.from_fields(fields).to_wire())
    except InvalidTrade:
        raise
    except Exception as error:  # noqa: BLE001 - values may only look like text
        raise InvalidTrade("not_decoded", "trade", payload, _told(error)) from None


def _told(error: Exception) -> str:
    """Return what an error says, as short text that can be stored anywhere."""
    text = f"{type(error).__name__}: {error}"[:_LONGEST_RULE]
    return text.encode("utf-8", "backslashreplace").decode()
