"""What a window says of a group: of all instruments of a market, or of a sector. Pure.

This module is a contract. A group has a key, ``group:market:KOSPI`` or
``group:sector:Semiconductors``; instruments whose market (sector) nobody has said are
in the group with the empty name, ``group:market:``. So the sum over all markets is the
window, and so is the sum over all sectors. A group without a trade in a window is not
in it.

The body is a JSON object: ``group`` (the key), ``window`` (its end, ms),
``instruments`` (rows of the window that are in the group and are news), ``advancing``,
``declining`` and ``unchanged`` (those whose price is above, below and at their previous
close), ``unpriced`` (those without one), ``trades``, ``volume`` (sum of sizes),
``value`` (sum of price times size), all three over every trade of the window, also late
ones, and ``mean_change_pct`` (over the instruments with a previous close, null if there
are none). Numbers are exact: ``volume`` and ``value`` may have more digits than a
double keeps.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from ingest.instrument_table.known_instruments import MARKET, SECTOR

GROUP = "group:"
"""What the key of a group begins with."""

CHANGE_PLACES = 6
"""An instrument's change is in whole millionths of a percent, a half rounded up."""

MEAN_PLACES = 4
"""Digits of ``mean_change_pct`` behind the point; a half is rounded up."""

FRACTION_DIGITS = 36
"""Most digits behind the point of a sum: a price and a size have 18 each."""

_PER_UNIT: int = 10**FRACTION_DIGITS
_BETWEEN = b'},{"group":'
_KEY = re.compile(rb'"group":("(?:[^"\\]|\\.)*"),')


class Group(NamedTuple):
    """One group in one window: its key, and its body as JSON."""

    key: str
    body: bytes

    @classmethod
    def decode(cls, body: bytes) -> "Group":
        """Decode a body. Raises ValueError for what the throttle would not write."""
        found = _KEY.match(body, 1)
        if found is None or body[:1] + body[-1:] != b"{}":
            raise ValueError(f"group {body!r}: must be an object that names its key")
        return cls(str(orjson.loads(found[1])), body)

    @property
    def field(self) -> str:
        """What it is called in the hash ``Keys.groups``: the key without ``group:``."""
        return self.key.removeprefix(GROUP)


class StoredGroup(NamedTuple):
    """What the hash ``Keys.groups`` holds of a group: its newest, and since when.

    ``offset`` is that of the update it came with.
    """

    offset: int
    group: Group

    @classmethod
    def decode(cls, value: bytes) -> "StoredGroup":
        """Decode one value of the hash, ``<offset> <body>``. Raises ValueError."""
        offset, _, body = value.partition(b" ")
        return cls(int(offset), Group.decode(body))


def market_key(market: str | None) -> str:
    """Return the key of a market's group; None is one that nobody has said."""
    return f"{GROUP}{MARKET}{market or ''}"


def sector_key(sector: str | None) -> str:
    """Return the key of a sector's group; None is one that nobody has said."""
    return f"{GROUP}{SECTOR}{sector or ''}"


def encode_groups(groups: Iterable[Group]) -> bytes:
    """Encode groups as a JSON list."""
    return b"[%b]" % b",".join(group.body for group in groups)


def decode_groups(encoded: bytes) -> tuple[Group, ...]:
    """Decode what ``encode_groups`` wrote, every number as it is. Raises ValueError."""
    if encoded[:1] + encoded[-1:] != b"[]":
        raise ValueError("groups must be a list")
    if encoded == b"[]":
        return ()
    # In a text a quotation mark has a backslash: this is between two groups only.
    first, *others = encoded[1:-1].split(_BETWEEN)
    bodies = [first, *(b'{"group":' + other for other in others)]
    ends = [b"}"] * len(others) + [b""]
    return tuple(Group.decode(b + e) for b, e in zip(bodies, ends, strict=True))


@dataclass(slots=True)
class GroupFigures:
    """The figures of a group. ``volume`` and ``value`` are whole numbers of 10^-36.

    ``changes`` is the sum of its priced instruments' changes (``change_of``).
    """

    instruments: int = 0
    advancing: int = 0
    declining: int = 0
    unchanged: int = 0
    trades: int = 0
    volume: int = 0
    value: int = 0
    changes: int = 0

    def add_trades(self, trades: int, volume: int, value: int) -> None:
        """Add an instrument's trades; ``volume`` and ``value`` in units of 10^-36."""
        self.trades += trades
        self.volume += volume
        self.value += value

    def add_instrument(self, price: str, prev_close: str | None) -> None:
        """Add an instrument: its latest price and previous close as decimal text."""
        self.instruments += 1
        if prev_close is None:
            return
        now, before = units(price), units(prev_close)
        self.advancing += now > before
        self.declining += now < before
        self.unchanged += now == before
        self.changes += change_of(now, before)

    @property
    def priced(self) -> int:
        """How many instruments have a previous close."""
        return self.advancing + self.declining + self.unchanged

    @property
    def mean_change_pct(self) -> str | None:
        """The mean change as decimal text, None if none has a previous close."""
        if not self.priced:
            return None
        coarse = self.priced * 10 ** (CHANGE_PLACES - MEAN_PLACES)
        mean = _divide(self.changes, coarse)
        whole, fraction = divmod(abs(mean), 10**MEAN_PLACES)
        return f"{'-' if mean < 0 else ''}{whole}.{fraction:0{MEAN_PLACES}}"

    def encode(self, key: str, window_ms: int) -> Group:
        """Return the group that says it, in the window that ends at ``window_ms``."""
        body = (
            b'{"group":%b,"window":%d,"instruments":%d,"advancing":%d,"declining":%d,'
            b'"unchanged":%d,"unpriced":%d,"trades":%d,"volume":%b,"value":%b,'
            b'"mean_change_pct":%b}'
        ) % (
            orjson.dumps(key),
            window_ms,
            self.instruments,
            self.advancing,
            self.declining,
            self.unchanged,
            self.instruments - self.priced,
            self.trades,
            decimal_text(self.volume),
            decimal_text(self.value),
            (self.mean_change_pct or "null").encode(),
        )
        return Group(key, body)


def units(decimal: str) -> int:
    """Return a decimal text of up to 36 places as a whole number of 10^-36."""
    whole, _, fraction = decimal.partition(".")
    return int(whole + fraction.ljust(FRACTION_DIGITS, "0"))


def change_of(price: int, prev_close: int) -> int:
    """Return by how much a price is away from the previous close, in 10^-6 percent.

    Both are whole numbers of one unit; the previous close is above 0.
    """
    return _divide((price - prev_close) * 100 * 10**CHANGE_PLACES, prev_close)


def _divide(number: int, by: int) -> int:
    """Divide by a number above 0; a half is rounded up."""
    return (2 * number + by) // (2 * by)


def decimal_text(number: int) -> bytes:
    """Return units of 10^-36 as a plain decimal without zeros at its end."""
    whole, fraction = divmod(number, _PER_UNIT)
    digits = f"{fraction:0{FRACTION_DIGITS}}".rstrip("0") if fraction else ""
    return (f"{whole}.{digits}" if digits else str(whole)).encode()
