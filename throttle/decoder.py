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
    except (ImportError, AttributeError, ValueError) as error:
        raise NoDecoder(f"decoder {name}: {error}") from None
    if not callable(found):
        raise NoDecoder(f"decoder {name}: is not a function")
    decoder: Decoder = found
    return decoder


def decode(payload: bytes, decoder: Decoder | None) -> Trade:
    """Return the trade an entry holds. Raises InvalidTrade, and nothing else."""
    if decoder is None or not payload:
        return Trade.from_wire(payload)
    try:
        fields = decoder(payload)
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything
        rule = f"{type(error).__name__}: {error}"
        raise InvalidTrade("not_decoded", "trade", payload, rule) from None
    if not isinstance(fields, Mapping):
        raise InvalidTrade("not_object", "trade", payload, "is no mapping of fields")
    return Trade.from_fields(fields)
