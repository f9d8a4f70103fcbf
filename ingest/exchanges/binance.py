"""Binance, spot: public trades, no key. Pure."""

import re
from collections.abc import Iterable, Iterator
from json import dumps
from typing import Any

from ingest.adapters.adapter import (
    Adapter,
    BadChoice,
    ExchangeInstrument,
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
    milliseconds,
    read_json,
    read_records,
    shortest_decimal,
)
from ingest.trade import InvalidTrade

_STREAMS_IN_THE_ADDRESS = 100
_STREAMS_A_MESSAGE = 200
_TOO_MANY_REQUESTS = -1003
_INTERNAL = range(-1010, -999)
_SEPARATORS = re.compile("[-/_ ]")


class Binance(Adapter):
    """Trades of ``wss://stream.binance.com:9443``, streams ``<symbol>@trade``.

    The exchange numbers the trades of a symbol by one, so what an outage cost is known
    exactly. It closes every connection after 24 hours.
    """

    name = "binance"
    venue = "BINANCE"
    prefix = "QN"
    url = "wss://stream.binance.com:9443"
    rest_url = "https://api.binance.com"
    numbering = Numbering.BY_ONE
    # It allows 1,024; the address and the messages stay short.
    symbols_a_connection = 500
    # 300 in five minutes from one address.
    connects = Limit(50, 60.0)
    messages = Limit(4, 1.0)
    silence_s = 120.0

    def address(self) -> str:
        names = "/".join(self._streams()[:_STREAMS_IN_THE_ADDRESS])
        return f"{self.url}/stream?streams={names}"

    def subscribe(self) -> Iterable[str]:
        """Ask for the streams that are not in the address."""
        rest = self._streams()[_STREAMS_IN_THE_ADDRESS:]
        for first in range(0, len(rest), _STREAMS_A_MESSAGE):
            params = rest[first : first + _STREAMS_A_MESSAGE]
            number = 1 + first // _STREAMS_A_MESSAGE
            yield dumps({"method": "SUBSCRIBE", "params": params, "id": number})

    def _streams(self) -> list[str]:
        return [f"{symbol.lower()}@trade" for symbol in self.symbols]

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Read one event, in a combined stream's envelope or without it."""
        fields = read_json(frame)
        if not isinstance(fields, dict):
            raise InvalidTrade("not_object", "frame", frame, "is not an object")
        return read_records([fields.get("data", fields)], _read)

    @classmethod
    def canonical(cls, symbol: str) -> str:
        """Return a symbol in capitals, without what parts its assets."""
        joined = _SEPARATORS.sub("", symbol).upper()
        if not joined.isalnum():
            raise BadChoice(
                f"symbol {symbol!r}: must be two assets of the spot market, such as "
                f"BTCUSDT{_meant(joined)}"
            )
        return joined

    @classmethod
    def listed(cls, fetch: Fetch) -> list[ExchangeInstrument]:
        """Return every symbol that trades: base and quote asset, tick size."""
        address = f"{cls.rest_url}/api/v3/exchangeInfo?permissions=SPOT"
        answer = read_json(fetch(address, None))
        rows = answer.get("symbols") if isinstance(answer, dict) else None
        if not isinstance(rows, list):
            raise InvalidTrade("missing_field", "symbols", rows, "must be a list")
        instruments = []
        for row in rows:
            if not isinstance(row, dict):
                raise InvalidTrade("not_object", "symbol", row, "is not an object")
            if row.get("status") != "TRADING":
                continue
            base, quote = field(row, "baseAsset", str), field(row, "quoteAsset", str)
            symbol, name = field(row, "symbol", str), f"{base}/{quote}"
            tick_size = _tick_size(row.get("filters"))
            instruments.append(ExchangeInstrument(symbol, name, name, quote, tick_size))
        return instruments

    @classmethod
    def chosen(cls, symbol: str) -> bool:
        """Without a choice: what trades in USDT."""
        return symbol.endswith("USDT")


def _read(event: Any) -> Iterator[Piece]:
    if not isinstance(event, dict):
        raise InvalidTrade("not_object", "data", event, "is not an object")
    kind = event.get("e")
    if kind == "trade":
        yield ExchangeTrade(
            field(event, "s", str),
            milliseconds(event, "T"),
            field(event, "p", str),
            field(event, "q", str),
            field(event, "t", int),
            # The buyer was waiting in the book, so it was the seller who traded.
            extra={"side": "S" if event.get("m") is True else "B"},
            sent_us=milliseconds(event, "E"),
        )
    elif kind == "serverShutdown":
        yield Reconnect("the server is about to shut down")
    elif kind is not None:
        yield Skip("no_trade", may_be_trade=True)
    elif "error" in event or "code" in event:
        yield _error(event)
    elif "result" in event:
        yield Skip("acknowledged")
    else:
        raise InvalidTrade("missing_field", "e", None, "is required")


def _meant(symbol: str) -> str:
    """Return a question with what stands in front of ``:`` or ``@``, if it is one."""
    first = re.split("[:@]", symbol)[0]
    return f"; did you mean {first}?" if first.isalnum() and first != symbol else ""


def _tick_size(filters: object) -> str:
    for rule in filters if isinstance(filters, list) else []:
        if isinstance(rule, dict) and rule.get("filterType") == "PRICE_FILTER":
            try:
                return shortest_decimal(str(rule.get("tickSize")))
            except ValueError:
                return ""
    return ""


def _error(event: dict[str, object]) -> Piece:
    error = event.get("error", event)
    fields = error if isinstance(error, dict) else {"msg": error}
    code, words = fields.get("code"), str(fields.get("msg", ""))[:200]
    told = f"code {str(code)[:20]}: {words}"
    if code == _TOO_MANY_REQUESTS or "too many" in words.lower():
        return Reconnect(told, is_rate_limit=True)
    if isinstance(code, int) and code in _INTERNAL:
        return Told(told)
    return TurnedAway(told)
