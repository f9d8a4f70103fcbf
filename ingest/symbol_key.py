"""Keys in the form of an ISIN for what has none, made of its symbol. Pure.

The rule, which those who append share, is stated in ``tickthrottle_client/key_v1.py``.
"""

from tickthrottle_client.key_v1 import (
    OWN_VENUES,
    VENUE_PATTERN,
    BadSymbol,
    SymbolKeys,
    Venue,
    key_of,
    keys_of,
    symbol_of,
)

__all__ = [
    "OWN_VENUES",
    "VENUE_PATTERN",
    "BadSymbol",
    "SymbolKeys",
    "Venue",
    "key_of",
    "keys_of",
    "symbol_of",
]
