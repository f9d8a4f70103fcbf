"""What one says of an instrument's trading: halted, resumed, in an auction. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tickthrottle_client.trade_v1 import (
    InvalidTrade,
    JsonNumber,
    check_decimal,
    check_integer,
    check_isin,
    check_time,
)

TRADING, HALTED = "trading", "halted"
VOLATILITY_INTERRUPTION, AUCTION = "volatility_interruption", "auction"
LIMIT_UP, LIMIT_DOWN, PRICE_BANDS = "limit_up", "limit_down", "price_bands"
STATUSES = (
    *(TRADING, HALTED, VOLATILITY_INTERRUPTION, AUCTION),
    *(LIMIT_UP, LIMIT_DOWN, PRICE_BANDS),
)

STATE, BANDS = "state", "bands"
"""A status takes the place of the one before it of its own kind alone: bands that move
end no halt.
"""

MOST_REASON_CHARS = 100

MOST_AHEAD_US = 60_000_000
"""A status may be this much ahead of the clock of whoever takes it in."""

_OF_AUCTION = ("expected_price", "expected_size")
_OF_BANDS = ("lower", "upper")
_NAMES = (
    "isin",
    "status",
    "time",
    "venue",
    "until",
    *_OF_AUCTION,
    *_OF_BANDS,
    "reason",
)
_VENUE_FORM = re.compile(r"[0-9A-Za-z._-]{1,20}", re.ASCII)


@dataclass(frozen=True, slots=True)
class TradingStatus:
    """One status of one instrument.

    ``time_us`` is when the exchange said it, ``until_us`` when it expects the status to
    end, microseconds since 1970. Prices and sizes are decimals above zero, as text:
    ``expected_*`` of an auction, ``lower`` and ``upper`` of price bands. An empty
    ``venue`` is the instrument as a whole.
    """

    isin: str
    status: str
    time_us: int
    venue: str = ""
    until_us: int | None = None
    expected_price: str | None = None
    expected_size: str | None = None
    lower: str | None = None
    upper: str | None = None
    reason: str | None = None

    @property
    def slot(self) -> str:
        """Which status it takes the place of: of its instrument, venue and kind."""
        kind = BANDS if self.status == PRICE_BANDS else STATE
        return f"{self.isin}/{self.venue}/{kind}"

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> "TradingStatus":
        """Check decoded JSON. A field that is null is left out. Raises InvalidTrade."""
        given = {name: value for name, value in fields.items() if value is not None}
        for name in ("isin", "status", "time"):
            if name not in given:
                raise InvalidTrade("missing_field", name, None, "is required")
        for name in given:
            if name not in _NAMES:
                rule = f"is no field of a status: {', '.join(_NAMES)}"
                raise InvalidTrade("bad_field", str(name), given[name], rule)
        status = given["status"]
        if status not in STATUSES:
            rule = f"must be one of {', '.join(STATUSES)}"
            raise InvalidTrade("bad_status", "status", status, rule)
        _check_belongs(given, _OF_AUCTION, AUCTION)
        _check_belongs(given, _OF_BANDS, PRICE_BANDS)
        if status == PRICE_BANDS and not given.keys() & {*_OF_BANDS}:
            raise InvalidTrade("missing_field", "lower", None, "or upper is required")
        decimals = {
            name: check_decimal(name, _plain(given[name]))
            for name in (*_OF_AUCTION, *_OF_BANDS)
            if name in given
        }
        return cls(
            check_isin(given["isin"]),
            status,
            check_time(given["time"]),
            _check_venue(given.get("venue", "")),
            check_integer("until", given["until"]) if "until" in given else None,
            reason=_check_reason(given.get("reason")),
            **decimals,
        )

    def encode(self) -> bytes:
        """Return the JSON object; decimals are numbers with the digits that came."""
        fields: dict[str, Any] = {
            "isin": self.isin,
            "status": self.status,
            "time": self.time_us,
            "venue": self.venue or None,
            "until": self.until_us,
            **{name: _number(getattr(self, name)) for name in _OF_AUCTION + _OF_BANDS},
            "reason": self.reason,
        }
        return orjson.dumps({k: v for k, v in fields.items() if v is not None})


def check_status_not_ahead(status: TradingStatus, now_us: int) -> None:
    """Refuse a status of the future: it would be the newest for ever.

    Raises InvalidTrade.
    """
    if status.time_us > now_us + MOST_AHEAD_US:
        rule = f"is more than {MOST_AHEAD_US // 1_000_000} s ahead of the clock here"
        raise InvalidTrade("future_time", "time", status.time_us, rule)


def _check_belongs(given: Mapping[str, Any], names: tuple[str, ...], to: str) -> None:
    for name in names:
        if name in given and given["status"] != to:
            raise InvalidTrade("bad_field", name, given[name], f"only with {to}")


def _check_venue(value: Any) -> str:
    if value and not (isinstance(value, str) and _VENUE_FORM.fullmatch(value)):
        rule = "must be 1 to 20 letters, digits, points, dashes or underscores"
        raise InvalidTrade("bad_venue", "venue", value, rule)
    return value or ""


def _check_reason(value: Any) -> str | None:
    if value is None:
        return None
    is_text = isinstance(value, str) and 0 < len(value) <= MOST_REASON_CHARS
    # A lone surrogate is in no UTF-8.
    if not is_text or not value.isprintable():
        rule = f"must be text of 1 to {MOST_REASON_CHARS} printable characters"
        raise InvalidTrade("bad_reason", "reason", value, rule)
    return str(value)


def _plain(value: Any) -> Any:
    return value.text if isinstance(value, JsonNumber) else value


def _number(text: str | None) -> orjson.Fragment | None:
    return None if text is None else orjson.Fragment(text)
