"""Alpaca, a US broker: trades of US stocks, with a key. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from json import dumps
from typing import Any
from zoneinfo import ZoneInfo

from ingest.adapters.adapter import (
    Adapter,
    BadChoice,
    ExchangeCancel,
    ExchangeCorrection,
    ExchangeStatus,
    ExchangeTrade,
    Frame,
    Limit,
    Numbering,
    Piece,
    Reconnect,
    Reply,
    Skip,
    Told,
    TurnedAway,
    field,
    read_json,
    read_records,
)
from ingest.conditions.sale_rules import Sale
from ingest.statuses.trading_status import (
    AUCTION,
    HALTED,
    MOST_REASON_CHARS,
    PRICE_BANDS,
    TRADING,
    VOLATILITY_INTERRUPTION,
)
from ingest.trade import InvalidTrade
from tickthrottle_client.trade_v1 import microseconds_of

_NEW_YORK = ZoneInfo("America/New_York")
_HOUR_US = 3_600_000_000
_TIME_FORM = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", re.ASCII
)
_SEPARATORS = re.compile("[-/_ ]")
_TICKER_FORM = re.compile(r"[0-9A-Z]+(?:\.[0-9A-Z]+)*", re.ASCII)
_AVERAGE_PRICE = "W"
_CTA = {"2": HALTED, "3": TRADING}
_UTP = {"H": HALTED, "P": VOLATILITY_INTERRUPTION, "Q": AUCTION, "T": TRADING}
_PAUSES = ("M", "LUDP", "LUDS")
_KEY_CODES = {401, 402, 404}
_FOR_GOOD = {400, 405, 409, 410}
_LIMIT_CODES = {406, 407}


class Alpaca(Adapter):
    """Trades of ``wss://stream.data.alpaca.markets/v2/iex``; ``--url`` for another one.

    It takes one connection a key. Outside of trading hours nothing comes for long, so
    silence says nothing; the library's ping frames find a dead connection.
    """

    name = "alpaca"
    venue = "ALPACA"
    prefix = "QP"
    url = "wss://stream.data.alpaca.markets/v2/iex"
    # Trade ids are unique within an exchange, and none by one.
    numbering = Numbering.UNIQUE
    conditions = "us_equities"
    secrets = ("key", "secret")
    symbols_a_connection = 10_000
    most_connections = 1
    connects = Limit(1, 2.0)
    silence_s = None

    def __init__(self, symbols: Sequence[str], secrets: Mapping[str, str]) -> None:
        super().__init__(symbols, secrets)
        self._has_asked_more = False

    def subscribe(self) -> Iterable[str]:
        """Return nothing: the exchange speaks first."""
        return ()

    def decode(self, frame: Frame) -> Iterator[Piece]:
        """Read a list of messages; answer those of the login."""
        messages = read_json(frame)
        if not isinstance(messages, list):
            raise InvalidTrade("not_object", "frame", frame, "is not a list")
        return read_records(messages, self._read)

    @classmethod
    def canonical(cls, symbol: str) -> str:
        """Return a ticker in capitals; a point parts a class of shares: ``BRK.B``."""
        ticker = _SEPARATORS.sub(".", symbol.upper())
        if not _TICKER_FORM.fullmatch(ticker):
            raise BadChoice(f"symbol {symbol!r}: must be a ticker, such as AAPL, BRK.B")
        return ticker

    def _read(self, message: Any) -> Iterator[Piece]:
        if not isinstance(message, dict):
            raise InvalidTrade("not_object", "message", message, "is no object")
        kind = message.get("T")
        if kind == "t":
            yield _trade(message)
        elif kind == "success":
            yield from self._log_in(message.get("msg"))
        elif kind == "subscription":
            yield Skip("acknowledged")
            yield from self._unknown(message.get("trades"))
            if not self._has_asked_more:
                # Apart from trades: who may not have these has trades all the same.
                self._has_asked_more = True
                symbols = list(self.symbols)
                more = {"action": "subscribe", "statuses": symbols, "lulds": symbols}
                yield Reply(dumps(more))
        elif kind == "error":
            yield _error(message, are_trades_here=self._has_asked_more)
        elif kind in ("s", "l"):
            yield from _status(message) if kind == "s" else _bands(message)
        elif kind == "c":
            yield _correction(message)
        elif kind == "x":
            yield _cancel(message)
        elif isinstance(kind, str):
            yield Skip("no_trade", may_be_trade=True)
        else:
            raise InvalidTrade("missing_field", "T", kind, "is required")

    def _log_in(self, words: object) -> Iterator[Piece]:
        yield Skip("acknowledged")
        if words == "connected":
            key, secret = self.secret.get("key", ""), self.secret.get("secret", "")
            yield Reply(dumps({"action": "auth", "key": key, "secret": secret}))
        elif words == "authenticated":
            symbols = list(self.symbols)
            yield Reply(dumps({"action": "subscribe", "trades": symbols}))

    def _unknown(self, accepted: object) -> Iterator[Piece]:
        known = set(map(str, accepted)) if isinstance(accepted, list) else set()
        missing = [symbol for symbol in self.symbols if symbol not in known]
        if missing:
            yield Told(f"{len(missing)} symbols were not taken: {missing[:5]}")


def _trade(message: Mapping[str, Any]) -> ExchangeTrade:
    extra: dict[str, str] = {}
    for name, short in (("exchange", "x"), ("tape", "z")):
        if isinstance(value := message.get(short), str):
            extra[name] = value
    codes = conditions = message.get("c")
    if isinstance(conditions, list) and all(isinstance(c, str) for c in conditions):
        extra["conditions"] = " ".join(conditions)
        if extra.get("tape") == "C" and "B" in conditions:
            # Average prices come as B on tape C too, where that is a bunched trade by
            # the plan: in doubt a trade does not set the last price.
            codes = [*conditions, _AVERAGE_PRICE]
    time_us = _time_us(field(message, "t", str))
    return ExchangeTrade(
        field(message, "S", str),
        time_us,
        field(message, "p", (str, int)),
        field(message, "s", (str, int)),
        field(message, "i", int),
        _series(extra.get("exchange", ""), time_us // _HOUR_US),
        extra,
        # The exchange stamps nothing else; the way here is in it.
        time_us,
        Sale(codes, extra.get("tape"), extra.get("exchange")),
    )


def _status(message: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield a halt, a pause or their end; the codes depend on the tape."""
    code, tape = field(message, "sc", str), message.get("z")
    reason = str(message.get("rc") or "")
    status = (_UTP if tape == "C" else _CTA).get(code)
    if status is None:
        yield Skip("status")
        return
    if status == HALTED and reason in _PAUSES:
        status = VOLATILITY_INTERRUPTION
    words = " ".join(filter(None, (reason, str(message.get("rm") or ""))))
    extra = {"reason": words[:MOST_REASON_CHARS]} if words else {}
    time_us = _time_us(field(message, "t", str))
    yield ExchangeStatus(field(message, "S", str), time_us, status, extra=extra)


def _bands(message: Mapping[str, Any]) -> Iterator[Piece]:
    """Yield the band that a price may be in (limit up, limit down)."""
    bands = {
        "lower": str(field(message, "d", (str, int))),
        "upper": str(field(message, "u", (str, int))),
    }
    # Without a band, as outside of trading hours, they are 0.
    extra = {name: price for name, price in bands.items() if price.strip("0.")}
    if not extra:
        yield Skip("status")
        return
    time_us = _time_us(field(message, "t", str))
    yield ExchangeStatus(field(message, "S", str), time_us, PRICE_BANDS, extra=extra)


def _cancel(message: Mapping[str, Any]) -> ExchangeCancel:
    time_us = _time_us(field(message, "t", str))
    exchange = field(message, "x", str)
    return ExchangeCancel(
        field(message, "S", str),
        time_us,
        field(message, "i", int),
        _series(exchange, time_us // _HOUR_US),
        {"exchange": exchange},
    )


def _correction(message: Mapping[str, Any]) -> ExchangeCorrection:
    # The trade as it is now, under the names that a trade has.
    now = {
        "i": field(message, "ci", int),
        "p": field(message, "cp", (str, int)),
        "s": field(message, "cs", (str, int)),
        "c": message.get("cc"),
    }
    return ExchangeCorrection(field(message, "oi", int), _trade({**message, **now}))


@lru_cache(maxsize=64)
def _series(exchange: str, hour: int) -> str:
    """Return what ids are unique in: an exchange's day. One text for all of them.

    A day of New York has all of a session, and what is taken back of it.
    """
    day = datetime.fromtimestamp(hour * 3600, _NEW_YORK).date()
    return f"{exchange}/{day}"


def _time_us(text: str) -> int:
    """Return a time as in RFC 3339, nanoseconds cut to microseconds."""
    form = _TIME_FORM.fullmatch(text)
    if form is None:
        rule = "must be a time as in RFC 3339, such as 2026-03-20T14:30:00.123456789Z"
        raise InvalidTrade("bad_time", "t", text, rule)
    fraction = (form[2] or "").ljust(6, "0")[:6]
    return _second_us(form[1], form[3]) + int(fraction)


@lru_cache(maxsize=64)
def _second_us(second: str, offset: str) -> int:
    try:
        return microseconds_of(datetime.fromisoformat(second + offset))
    except (ValueError, OverflowError) as error:
        raise InvalidTrade("bad_time", "t", second, str(error)) from None


def _error(message: Mapping[str, Any], *, are_trades_here: bool) -> Piece:
    code, words = message.get("code"), str(message.get("msg", ""))[:200]
    told = f"code {str(code)[:20]}: {words}"
    if code in _KEY_CODES:
        return TurnedAway(f"{told}; is the key right?")
    if code in _FOR_GOOD and not are_trades_here:
        return TurnedAway(told)
    if code in _LIMIT_CODES:
        return Reconnect(told, is_rate_limit=True)
    return Told(told)
