"""Series: parts of an instrument's trades, by venue and session. Pure.

This module is a contract. The key of a series is the instrument's with an ``@`` and the
series' name: ``KR7005930003@NXT`` has its trades whose field ``venue`` is NXT,
``KR7005930003@regular`` those whose field ``session`` is regular,
``KR7005930003@KRX-regular`` those of both. The instrument's own key has all its trades.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ingest.trade import ISIN_CHARS, ISIN_PATTERN

VENUE, SESSION = "venue", "session"
"""The fields of a trade that say of which series it is."""

SESSIONS = ("pre", "regular", "after", "closed")
"""The sessions of a day. ``closed`` is a trade of a day without a session."""

REGULAR = "regular"

MOST_SERIES = 16
"""So many series one deployment may keep."""

_AT = "@"
_SESSION = "|".join(SESSIONS)
_VENUE_NAME = "[A-Z][A-Z0-9_]{0,15}"
_NAME = re.compile(
    rf"(?P<venue>{_VENUE_NAME})(?:-(?P<of_venue>{_SESSION}))?|(?P<session>{_SESSION})",
    re.ASCII,
)
KEY_PATTERN = rf"{ISIN_PATTERN}(?:@(?:{_VENUE_NAME}(?:-(?:{_SESSION}))?|{_SESSION}))?"
"""What the key of an instrument, or of a series of it, looks like."""

_RULE = (
    f"must be a venue in capitals, a session ({', '.join(SESSIONS)}), or both, as in "
    "KRX-regular"
)


class TradeSeries(NamedTuple):
    """Which trades of an instrument it has; empty is what it does not ask for."""

    venue: str
    session: str

    @property
    def name(self) -> str:
        """What stands behind the ``@`` of its keys."""
        return "-".join(filter(None, self))

    def key(self, isin: str) -> str:
        """Return the key of this series of an instrument."""
        return f"{isin}{_AT}{self.name}"

    def has(self, fields: Mapping[str, Any]) -> bool:
        """Say whether a trade with these further fields is in it."""
        is_of_venue = not self.venue or fields.get(VENUE) == self.venue
        return is_of_venue and (not self.session or fields.get(SESSION) == self.session)

    @classmethod
    def parse(cls, name: str) -> "TradeSeries":
        """Read a name. Raises ValueError."""
        form = _NAME.fullmatch(name)
        if form is None:
            raise ValueError(f"{name[:40]!r}: {_RULE}")
        return cls(form["venue"] or "", form["of_venue"] or form["session"] or "")


def parse_series(text: str) -> tuple[TradeSeries, ...]:
    """Read ``KRX,NXT,regular``, each once. Raises ValueError."""
    names = dict.fromkeys(filter(None, map(str.strip, text.split(","))))
    if len(names) > MOST_SERIES:
        raise ValueError(f"names {len(names)}, {MOST_SERIES} at most")
    return tuple(map(TradeSeries.parse, names))


def instrument_of(key: str) -> str:
    """Return the instrument that a key is of: of one without a series, the key."""
    return key[:ISIN_CHARS] if is_series(key) else key


def is_series(key: str) -> bool:
    """Say whether a key is that of a series, whatever its name is."""
    return key[ISIN_CHARS : ISIN_CHARS + 1] == _AT and ":" not in key


def code_of(text: str) -> str:
    """Return what stands before the name of a series: an ISIN, or a short code."""
    return text.partition(_AT)[0]


def series_of(key: str) -> TradeSeries | None:
    """Return the series that a key names, None if none. Raises ValueError."""
    return TradeSeries.parse(key[ISIN_CHARS + 1 :]) if is_series(key) else None
