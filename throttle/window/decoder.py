"""Entries of another form than the project's JSON: the user's own decoder.

A decoder is a function that is given an entry's bytes and returns the fields of a
trade, as ``Trade.from_fields`` takes them. Whatever it raises refuses the entry.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pkgutil import resolve_name
from typing import Any

from ingest.process.packages import PACKAGES
from ingest.trade import MAX_ENTRY_BYTES, InvalidTrade, Trade

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


def decode(
    payload: bytes, decoder: Decoder | None, max_bytes: int = MAX_ENTRY_BYTES
) -> Trade:
    """Return the trade an entry holds. Raises InvalidTrade, and nothing else.

    An entry of more than ``max_bytes`` is not looked at.

    A trade that a decoder made is as good as one read from JSON: it can be encoded,
    and is not larger than a payload may be.
    """
    if len(payload) > max_bytes:
        rule = f"over {max_bytes} bytes"
        raise InvalidTrade("too_large", "trade", len(payload), rule)
    if decoder is None or not payload:
        return Trade.from_wire(payload)
    try:
        decoded = decoder(payload)
        fields = dict(decoded) if isinstance(decoded, Mapping) else None
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything
        raise InvalidTrade("not_decoded", "trade", payload, _told(error)) from None
    if fields is None:
        raise InvalidTrade("not_object", "trade", payload, "is not a mapping of fields")
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
