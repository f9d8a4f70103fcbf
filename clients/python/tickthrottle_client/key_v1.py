"""A key in the form of an ISIN for what has none, made of its symbol. Pure.

The two letters in front are ones that ISO 3166 gives to nobody (QM to QZ), so no ISIN
begins with them; each venue has its own. The nine characters after them hold the symbol
itself where it fits: a form character, and the letters and digits, filled up with
zeros. ``BTCUSDT`` is ``1BTCUSDT0``, ``KRW-BTC`` is ``CKRWBTC00``: C says that a hyphen
follows the third character. From any other symbol eight characters are computed, behind
a 0; only a list tells which symbol that was. The last digit is an ISIN's check digit.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from string import ascii_uppercase, digits
from typing import Any

from tickthrottle_client.trade_v1 import InvalidTrade, isin_check_digit

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


OWN_VENUES = {"UPBIT": "QU", "BINANCE": "QN", "ALPACA": "QP"}
"""Letters of the venues that tickthrottle has an adapter for."""

OTHER_VENUES = "QX"
"""Letters of any other venue, unless it is given ones of its own."""

MOST_COMPUTED = 100_000
"""So many computed keys are compared with each other."""

VENUE_PATTERN = "[0-9A-Za-z._-]{1,20}(?:=Q[M-Z])?"
"""How a venue is written: its name, and letters of its own if it has any."""

_VENUE_FORM = re.compile(VENUE_PATTERN, re.ASCII)


class BadSymbol(ValueError):
    """A symbol that can have no key; the message names it and the rule."""

    def __init__(self, what: str, rule: str) -> None:
        super().__init__(f"{what}: {rule}")
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Venue:
    """Where symbols are from, and the two letters that its keys begin with."""

    name: str
    letters: str

    @classmethod
    def parse(cls, text: str) -> "Venue":
        """Read ``XNAS``, or ``XNAS=QM`` with letters of its own. Raises ValueError."""
        if not _VENUE_FORM.fullmatch(text):
            raise ValueError(
                f"{text[:40]!r}: must be a name of 1 to 20 letters, digits, . _ or -, "
                "with letters from QM to QZ behind it or none: XNAS or XNAS=QM"
            )
        name, _, letters = text.partition("=")
        return cls(name, letters or OWN_VENUES.get(name.upper(), OTHER_VENUES))

    def __str__(self) -> str:
        return f"{self.name}={self.letters}"


class SymbolKeys:
    """The keys of a venue's symbols, as they come.

    A computed key belongs to the symbol that came with it first; a second one is
    refused. Beyond ``MOST_COMPUTED`` computed keys, new ones are not compared.
    """

    def __init__(self, venue: Venue) -> None:
        self.venue = venue
        self._keys: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def key_of(self, symbol: str) -> str:
        """Return the key of a symbol. Raises BadSymbol."""
        key = self._keys.get(symbol)
        if key is None:
            key = key_of(self.venue.letters, symbol)
            if key[2] == _COMPUTED:
                if len(self._owners) < MOST_COMPUTED:
                    self._owners.setdefault(key, symbol)
                _check_owner(key, symbol, self._owners.get(key, symbol))
            if len(self._keys) == MOST_COMPUTED:
                self._keys.clear()
            self._keys[symbol] = key
        return key

    def keyed(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a trade's fields with a key for ``isin``, of their ``symbol``.

        Fields that have an ``isin``, or no ``symbol``, stay as they are. Where it has
        none, ``venue`` is added. Raises InvalidTrade.
        """
        symbol = fields.get("symbol")
        if not symbol or fields.get("isin"):
            return fields
        isin = self.isin_of(symbol)
        return {**fields, "isin": isin, "venue": fields.get("venue") or self.venue.name}

    def isin_of(self, symbol: Any) -> str:
        """Return the key of a symbol that a trade names. Raises InvalidTrade."""
        if type(symbol) is not str:
            raise InvalidTrade("bad_isin", "symbol", symbol, "must be text")
        try:
            return self.key_of(symbol)
        except BadSymbol as error:
            raise InvalidTrade("bad_isin", "symbol", symbol, error.rule) from None


def key_of(prefix: str, symbol: str) -> str:
    """Return the key of a venue's symbol. Raises BadSymbol.

    Two symbols written into their keys never share one. Two computed ones might, by
    chance (of 3,000 symbols in one case of 600,000): ``keys_of`` refuses them.
    """
    if not _PREFIX_FORM.fullmatch(prefix):
        raise BadSymbol(f"prefix {prefix!r}", "must be two letters from QM to QZ")
    if not 0 < len(symbol) <= MAX_SYMBOL_CHARS:
        rule = f"must have 1 to {MAX_SYMBOL_CHARS} chars"
        raise BadSymbol(f"symbol {symbol[:80]!r}", rule)
    number = prefix + _body(symbol)
    return number + isin_check_digit(number)


def keys_of(prefix: str, symbols: Iterable[str]) -> dict[str, str]:
    """Return the key of each symbol. Raises BadSymbol, also if two share a key."""
    keys: dict[str, str] = {}
    owners: dict[str, str] = {}
    for symbol in symbols:
        key = key_of(prefix, symbol)
        _check_owner(key, symbol, owners.setdefault(key, symbol))
        keys[symbol] = key
    return keys


def _check_owner(key: str, symbol: str, owner: str) -> None:
    if owner != symbol:
        raise BadSymbol(
            f"symbol {symbol!r}",
            f"has the same key {key} as {owner!r}; give one of them an ISIN of your "
            "own in an instrument list",
        )


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
