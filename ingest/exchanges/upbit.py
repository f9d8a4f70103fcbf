"""Upbit, a Korean exchange for crypto: public trades, no key. Pure.

Every frame of a trade also has the close of the day before (``prev_closing_price``).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from json import dumps
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    BadChoice,
    ExchangeInstrument,
    ExchangeTrade,
    Fetch,
    Frame,
    InstrumentDay,
    Limit,
    Numbering,
    Piece,
    Reconnect,
    Skip,
    Told,
    TurnedAway,
    field,
    milliseconds,
    read_json,
    read_records,
    shortest_decimal,
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
    "prev_closing_price": "pcp",
}
"""The fields that are read, and what formats with SIMPLE in their names call them."""

_SIDES = {"ASK": "S", "BID": "B"}
_OF_THE_REQUEST = {"WRONG_FORMAT", "NO_TICKET", "NO_TYPE", "NO_CODES", "INVALID_PARAM"}
_TOO_MANY = "TOO_MANY"
_SYMBOL_FORM = re.compile("([0-9A-Z]+)(?:([-/_])([0-9A-Z]+))?", re.ASCII)
_WON = "KRW"
_MONEY = {_WON, "SGD", "IDR", "THB"}
_CURRENCIES = {*_MONEY, "BTC", "USDT"}
"""What markets are quoted in; it stands in front of a market's code."""


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
        return read_records(decoded if isinstance(decoded, list) else [decoded], _read)

    @classmethod
    def canonical(cls, symbol: str) -> str:
        """Return a market's code: the currency first, as in ``KRW-BTC``.

        ``BTC/KRW``, as other exchanges and libraries write it, is turned round.
        """
        parts = _SYMBOL_FORM.fullmatch(symbol.upper())
        first, separator, second = parts.groups() if parts else ("", None, None)
        if not second and first.startswith(_WON):
            first, second = _WON, first.removeprefix(_WON)
        elif not second and first.endswith(_WON):
            first, second = _WON, first.removesuffix(_WON)
        if not (first and second):
            raise BadChoice(
                f"symbol {symbol!r}: must be a currency and what is traded in it, such "
                f"as KRW-BTC{_meant(first)}"
            )
        is_turned = second in _MONEY or first not in _CURRENCIES
        if separator == "/" and {first, second} <= _CURRENCIES:
            is_turned = first not in _MONEY
        if is_turned and second in _CURRENCIES:
            first, second = second, first
        return f"{first}-{second}"

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeInstrument]:
        """Return every market: its Korean and English name, its currency as sector."""
        rows = read_json(fetch(f"{cls.rest_url}/v1/market/all?is_details=false", None))
        if not isinstance(rows, list):
            raise InvalidTrade("not_object", "markets", rows, "is not a list")
        instruments = []
        for row in rows:
            if not isinstance(row, dict):
                raise InvalidTrade("not_object", "market", row, "is not an object")
            symbol = field(row, "market", str)
            instruments.append(
                ExchangeInstrument(
                    symbol,
                    name=str(row.get("korean_name") or ""),
                    name_en=str(row.get("english_name") or ""),
                    sector=symbol.partition("-")[0],
                )
            )
        return instruments

    @classmethod
    def chosen(cls, symbol: str) -> bool:
        """Without a choice: what trades in won."""
        return symbol.startswith("KRW-")


def _read(fields: Any) -> Iterator[Piece]:
    if not isinstance(fields, dict):
        raise InvalidTrade("not_object", "record", fields, "is not an object")
    if "error" in fields:
        yield _error(fields["error"])
        return
    if "status" in fields:
        yield Skip("keep_alive")
        return
    if "type" in fields:
        fields = {short: fields.get(name) for name, short in _LONG.items()}
    kind = fields.get("ty")
    if kind is None:
        raise InvalidTrade("missing_field", "type", None, "is required")
    if kind != "trade":
        yield Skip("no_trade", may_be_trade=True)
        return
    yield _trade(fields)
    yield from _day(fields)


def _trade(fields: Mapping[str, Any]) -> ExchangeTrade:
    extra = {}
    side = _SIDES.get(str(fields.get("ab")))
    if side is not None:
        extra["side"] = side
    # A snapshot is as old as its trade: it tells nothing of the exchange's clock.
    is_live = fields.get("st") == "REALTIME"
    return ExchangeTrade(
        field(fields, "cd", str),
        milliseconds(fields, "ttms"),
        field(fields, "tp", (str, int)),
        field(fields, "tv", (str, int)),
        field(fields, "sid", int),
        extra=extra,
        sent_us=milliseconds(fields, "tms") if is_live else None,
    )


def _day(fields: Mapping[str, Any]) -> Iterator[InstrumentDay]:
    close = fields.get("pcp")
    if isinstance(close, str | int) and not isinstance(close, bool):
        with suppress(ValueError):
            yield InstrumentDay(fields["cd"], prev_close=shortest_decimal(close))


def _meant(symbol: str) -> str:
    ends = (c for c in sorted(_CURRENCIES) if symbol.endswith(c) and symbol != c)
    currency = next(ends, None)
    if currency is None:
        return f"; did you mean KRW-{symbol}?" if symbol not in ("", _WON) else ""
    return f"; did you mean {currency}-{symbol.removesuffix(currency)}?"


def _error(error: Any) -> Piece:
    fields = error if isinstance(error, dict) else {"name": error}
    name, words = str(fields.get("name"))[:80], str(fields.get("message", ""))[:200]
    if name.startswith(_TOO_MANY):
        return Reconnect(f"{name}: {words}", is_rate_limit=True)
    if name == "INVALID_AUTH" or name in _OF_THE_REQUEST:
        return TurnedAway(f"{name}: {words}")
    return Told(f"{name}: {words}")
