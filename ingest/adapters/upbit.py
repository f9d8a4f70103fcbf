"""Upbit, a Korean exchange for crypto: public trades, no key. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from json import dumps
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    ExchangeIssue,
    ExchangeTrade,
    Fetch,
    Frame,
    Limit,
    Numbering,
    Piece,
    Reconnect,
    Skip,
    Told,
    TurnedAway,
    field,
    read_json,
)
from ingest.trade import InvalidTrade

_LONG = {
    "type": "ty",
    "code": "cd",
    "trade_price": "tp",
    "trade_volume": "tv",
    "trade_timestamp": "ttms",
    "timestamp": "tms",
    "sequential_id": "sid",
    "ask_bid": "ab",
    "stream_type": "st",
}
"""The fields that are read, and what formats with SIMPLE in their names call them."""

_SIDES = {"ASK": "S", "BID": "B"}
_OF_THE_REQUEST = {"WRONG_FORMAT", "NO_TICKET", "NO_TYPE", "NO_CODES", "INVALID_PARAM"}
_TOO_MANY = "TOO_MANY"


class Upbit(Adapter):
    """Trades of ``wss://api.upbit.com/websocket/v1``.

    A subscription begins with the last trade of each symbol, so the board is full at
    once; after a reconnect that trade comes again and is dropped by its number.
    """

    name = "upbit"
    venue = "UPBIT"
    prefix = "QU"
    url = "wss://api.upbit.com/websocket/v1"
    rest_url = "https://api.upbit.com"
    # Unique, as the exchange says, and explicitly no order.
    numbering = Numbering.UNIQUE
    connects = Limit(5, 1.0)
    messages = Limit(5, 1.0)
    ping = "PING"
    ping_every_s = 30.0
    silence_s = 90.0

    def subscribe(self) -> Iterable[str]:
        """Ask for all symbols in one message: another one would replace the first."""
        yield dumps(
            [
                {"ticket": "tickthrottle"},
                {"type": "trade", "codes": list(self.symbols)},
                {"format": "SIMPLE"},
            ]
        )

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Read any of the formats DEFAULT, SIMPLE, JSON_LIST and SIMPLE_LIST."""
        decoded = read_json(frame)
        for fields in decoded if isinstance(decoded, list) else [decoded]:
            if not isinstance(fields, dict):
                raise InvalidTrade("not_object", "frame", frame, "is not an object")
            yield _piece(fields)

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeIssue]:
        """Return every market: its Korean and English name, its currency as sector."""
        rows = read_json(fetch(f"{cls.rest_url}/v1/market/all?is_details=false", None))
        if not isinstance(rows, list):
            raise InvalidTrade("not_object", "markets", rows, "is not a list")
        issues = []
        for row in rows:
            if not isinstance(row, dict):
                raise InvalidTrade("not_object", "market", row, "is not an object")
            symbol = field(row, "market", str)
            issues.append(
                ExchangeIssue(
                    symbol,
                    name=str(row.get("korean_name") or ""),
                    name_en=str(row.get("english_name") or ""),
                    sector=symbol.partition("-")[0],
                )
            )
        return issues

    @classmethod
    def chosen(cls, symbol: str) -> bool:
        """Without a choice: what trades in won."""
        return symbol.startswith("KRW-")


def _piece(fields: Mapping[str, Any]) -> Piece:
    if "error" in fields:
        return _error(fields["error"])
    if "status" in fields:
        return Skip("keep_alive")
    if "type" in fields:
        fields = {short: fields.get(name) for name, short in _LONG.items()}
    kind = fields.get("ty")
    if kind is None:
        raise InvalidTrade("missing_field", "type", None, "is required")
    if kind != "trade":
        return Skip("no_trade")
    extra = {}
    side = _SIDES.get(str(fields.get("ab")))
    if side is not None:
        extra["side"] = side
    # A snapshot is as old as its trade: it tells nothing of the exchange's clock.
    is_live = fields.get("st") == "REALTIME"
    return ExchangeTrade(
        field(fields, "cd", str),
        field(fields, "ttms", int) * 1000,
        field(fields, "tp", (str, int)),
        field(fields, "tv", (str, int)),
        field(fields, "sid", int),
        extra=extra,
        sent_us=field(fields, "tms", int) * 1000 if is_live else None,
    )


def _error(error: Any) -> Piece:
    fields = error if isinstance(error, dict) else {"name": error}
    name, words = str(fields.get("name"))[:80], str(fields.get("message", ""))[:200]
    if name.startswith(_TOO_MANY):
        return Reconnect(f"{name}: {words}", is_rate_limit=True)
    if name == "INVALID_AUTH" or name in _OF_THE_REQUEST:
        return TurnedAway(f"{name}: {words}")
    return Told(f"{name}: {words}")
