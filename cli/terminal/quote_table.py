"""The quotes that `watch` shows: which, in what order, and how they are written. Pure.

Prices keep their digits, as on the board.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, tzinfo
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal, TypeAlias, get_args

import orjson

from tickthrottle_client.tick_v1 import read_decimal

Order: TypeAlias = Literal["code", "change", "trades", "newest"]
ORDERS: tuple[Order, ...] = get_args(Order)
"""By code, by change in percent, by trades in the window, by time; greatest first."""

ARROWS = {1: "▲", -1: "▼", 0: " "}
_PERCENT = Decimal("0.01")
_WHOLE = re.compile(r"(-?)(\d+)(.*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class QuoteLine:
    """One instrument: its newest item (``tick_client.Item``), and what it is called."""

    item: Mapping[str, Any]
    instrument: Mapping[str, Any]

    @property
    def label(self) -> str:
        """The code of the instrument, its ISIN if it has none."""
        return str(self.instrument.get("code") or self.item["isin"])

    @property
    def difference(self) -> Decimal | None:
        """How far the price is from the previous close, None if there is none."""
        close: Decimal | None = self.instrument.get("prev_close")
        price: Decimal = self.item["price"]
        return None if close is None else price - close

    @property
    def percent(self) -> Decimal | None:
        """The same in percent of the previous close, to two places, half to even."""
        if self.difference is None:
            return None
        ratio: Decimal = 100 * self.difference / self.instrument["prev_close"]
        return ratio.quantize(_PERCENT, ROUND_HALF_EVEN)

    @property
    def direction(self) -> int:
        """1 if the price is above the previous close, -1 if below, 0 otherwise."""
        difference = self.difference or 0
        return (difference > 0) - (difference < 0)

    def cells(self, zone: tzinfo | None = None) -> tuple[str, ...]:
        """Return what is written: code, name, price, change, %, size, trades, time."""
        difference, percent = self.difference, self.percent
        return (
            self.label,
            str(self.instrument.get("name") or ""),
            grouped(self.item["price"]),
            "" if difference is None else self._arrow(difference),
            "" if percent is None else f"{percent:+.2f}%" if percent else "0.00%",
            grouped(self.item["size"]),
            f"{self.item.get('trades', 0):,}",
            clock(self.item["time"], zone),
        )

    def _arrow(self, difference: Decimal) -> str:
        return f"{ARROWS[self.direction]} {grouped(abs(difference))}".strip()


def read_instruments(answer: Any) -> dict[str, dict[str, Any]]:
    """Return code, name and previous close of the instruments in an answer, by ISIN.

    From what no gateway says on, it is left out.
    """
    instruments: dict[str, dict[str, Any]] = {}
    with suppress(ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        for quote in answer["data"]:
            instrument = quote["instrument"]
            entry = {
                n: str(instrument[n]) for n in ("code", "name") if instrument.get(n)
            }
            close = read_decimal(instrument.get("prev_close") or 0)
            instruments[quote["isin"]] = entry | (
                {"prev_close": close} if close > 0 else {}
            )
    return instruments


def in_order(quotes: Iterable[QuoteLine], order: Order) -> list[QuoteLine]:
    """Return quotes in an order; equal ones by code."""
    by_code = sorted(quotes, key=lambda quote: quote.label)
    if order == "code":
        return by_code
    return sorted(by_code, key=lambda quote: _rank(quote, order))


def _rank(quote: QuoteLine, order: Order) -> Decimal:
    if order == "change":
        # What has no previous close comes last.
        return Decimal("Infinity") if quote.percent is None else -quote.percent
    return -Decimal(quote.item["time" if order == "newest" else "trades"])


def grouped(number: Decimal) -> str:
    """Write a decimal with its whole part in groups of three: ``1,234,567.50``."""
    text = f"{number:f}"
    form = _WHOLE.fullmatch(text)
    return text if form is None else f"{form[1]}{int(form[2]):,}{form[3]}"


def clock(time_us: int, zone: tzinfo | None = None) -> str:
    moment = datetime.fromtimestamp(time_us // 1_000_000, zone)
    return f"{moment:%H:%M:%S}.{time_us // 1000 % 1000:03d}"


def encode_item(item: Mapping[str, Any]) -> bytes:
    """Encode an item as JSON; decimals are numbers with every digit."""
    return orjson.dumps(item, default=_number)


def _number(value: Any) -> orjson.Fragment:
    if isinstance(value, Decimal):
        return orjson.Fragment(f"{value:f}")
    raise TypeError(type(value).__name__)
