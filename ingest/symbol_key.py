"""A key in the form of an ISIN for what has none, made of its symbol. Pure.

The two letters in front are ones that ISO 3166 gives to nobody (QM to QZ), so no ISIN
begins with them; each venue has its own. The nine characters after them hold the symbol
itself where it fits: a form character, and the letters and digits, filled up with
zeros. ``BTCUSDT`` is ``1BTCUSDT0``, ``KRW-BTC`` is ``CKRWBTC00``: C says that a hyphen
follows the third character. From any other symbol eight characters are computed, behind
a 0; only a list tells which symbol that was. The last digit is an ISIN's check digit.
"""

import re
from collections.abc import Iterable
from hashlib import blake2b
from string import ascii_uppercase, digits

from tickthrottle_client.trade_v1 import isin_check_digit

MAX_SYMBOL_CHARS = 64
"""Longest symbol that gets a key."""

_ROOM = 8
_PREFIX_FORM = re.compile("Q[M-Z]", re.ASCII)
_PLAIN_FORM = re.compile("[0-9A-Z]{0,7}[1-9A-Z]", re.ASCII)
_PARTED_FORM = re.compile(r"([0-9A-Z]{1,7})([-./])([0-9A-Z]{0,6}[1-9A-Z])", re.ASCII)
_PLAIN, _COMPUTED = "1", "0"
_SEPARATORS = "-./"
_PLACES = 7
_DIGITS = digits + ascii_uppercase


class BadSymbol(ValueError):
    """A symbol that can have no key; the message names it and the rule."""


def key_of(prefix: str, symbol: str) -> str:
    """Return the key of a venue's symbol. Raises BadSymbol.

    Two symbols written into their keys never share one. Two computed ones might, by
    chance (of 3,000 symbols in one case of 600,000): ``keys_of`` refuses them.
    """
    if not _PREFIX_FORM.fullmatch(prefix):
        raise BadSymbol(f"prefix {prefix!r}: must be two letters from QM to QZ")
    if not 0 < len(symbol) <= MAX_SYMBOL_CHARS:
        raise BadSymbol(f"symbol {symbol!r}: must have 1 to {MAX_SYMBOL_CHARS} chars")
    number = prefix + _body(symbol)
    return number + isin_check_digit(number)


def symbol_of(key: str) -> str | None:
    """Return the symbol that is written in a key; None if it was computed."""
    form, text = key[2], key[3:11].rstrip("0")
    if form == _COMPUTED:
        return None
    if form == _PLAIN:
        return text
    kind, before = divmod(ascii_uppercase.index(form), _PLACES)
    return text[: before + 1] + _SEPARATORS[kind] + text[before + 1 :]


def keys_of(prefix: str, symbols: Iterable[str]) -> dict[str, str]:
    """Return the key of each symbol. Raises BadSymbol, also if two share a key."""
    keys: dict[str, str] = {}
    owners: dict[str, str] = {}
    for symbol in symbols:
        key = key_of(prefix, symbol)
        owner = owners.setdefault(key, symbol)
        if owner != symbol:
            raise BadSymbol(
                f"symbols {owner!r} and {symbol!r}: have the same key {key}; give one "
                "of them an ISIN of your own in an issue list"
            )
        keys[symbol] = key
    return keys


def _body(symbol: str) -> str:
    if _PLAIN_FORM.fullmatch(symbol):
        return _PLAIN + symbol.ljust(_ROOM, "0")
    parted = _PARTED_FORM.fullmatch(symbol)
    if parted is not None and len(symbol) <= _ROOM + 1:
        first, separator, second = parted.groups()
        place = _SEPARATORS.index(separator) * _PLACES + len(first) - 1
        return ascii_uppercase[place] + (first + second).ljust(_ROOM, "0")
    return _COMPUTED + _compute(symbol)


def _compute(symbol: str) -> str:
    text = symbol.encode("utf-8", "surrogatepass")
    number = int.from_bytes(blake2b(text, digest_size=16).digest())
    characters = []
    for _ in range(_ROOM):
        number, digit = divmod(number, len(_DIGITS))
        characters.append(_DIGITS[digit])
    return "".join(characters)
