"""What a list of movers is: what rose, fell and traded most in a span. Pure.

This module is a contract: the analytics job writes the newest lists, gateways read
them. A span is a hopping window of the exchange's clock (five minutes, every ten
seconds); it is listed once, when the log's clock has passed its end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import orjson

from throttle.contract.bars import EXACT, Bar, number, subtract

LISTS = ("gainers", "losers", "value", "volume")
"""The lists: rose most, fell most, largest sum of price x size, largest volume."""

RATE_DIGITS = 4
"""Digits of a change in per cent after the point, half even."""


def change_percent(first: Decimal, last: Decimal) -> Decimal:
    """Return by how many per cent a price has changed (``RATE_DIGITS``)."""
    hundredfold = EXACT.multiply(subtract(last, first), Decimal(100))
    exact = EXACT.divide(hundredfold, first)
    return exact.quantize(Decimal(1).scaleb(-RATE_DIGITS), context=EXACT)


def change_of(bar: Bar) -> tuple[Decimal, Decimal] | None:
    """Return close less open, and the same in per cent; None for a bar without them."""
    if bar.open is None or bar.close is None:
        return None
    return subtract(bar.close, bar.open), change_percent(bar.open, bar.close)


def rank(bars: Iterable[Bar], most: int) -> Mapping[str, Sequence[Bar]]:
    """Return each of ``LISTS``: the first ``most`` of the bars of one span.

    Of equal ones the ISIN decides. Who has not moved, or has no price, is neither
    gainer nor loser. An instrument whose sum does not fit (None) is first in its list.
    """
    moved = [(change_of(bar), bar) for bar in bars]
    everyone = [bar for _, bar in moved]
    rising = [(-how[1], bar.isin, bar) for how, bar in moved if how and how[0] > 0]
    falling = [(how[1], bar.isin, bar) for how, bar in moved if how and how[0] < 0]
    return {
        "gainers": [bar for *_, bar in sorted(rising, key=_order)[:most]],
        "losers": [bar for *_, bar in sorted(falling, key=_order)[:most]],
        "value": sorted(everyone, key=lambda bar: _largest(bar.value, bar))[:most],
        "volume": sorted(everyone, key=lambda bar: _largest(bar.volume, bar))[:most],
    }


def _order(ranked: tuple[Decimal, str, Bar]) -> tuple[Decimal, str]:
    return ranked[:2]


def _largest(amount: Decimal | None, bar: Bar) -> tuple[bool, Decimal, str]:
    return amount is not None, -(amount or Decimal(0)), bar.isin


@dataclass(frozen=True, slots=True)
class MoversList:
    """The lists of one span, as they are kept and sent over the channel.

    ``sequence`` counts the messages of an ``epoch`` without holes. ``instruments`` is
    how many traded in the span. Each row is a JSON object: ``isin``, ``open``,
    ``close``, ``high``, ``low``, ``change`` (close - open), ``percent``, ``volume``,
    ``value``, ``trades``, ``vwap``.
    """

    epoch: str
    sequence: int
    start_ms: int
    end_ms: int
    instruments: int
    lists: Mapping[str, Sequence[Mapping[str, Any]]]

    def encode(self) -> bytes:
        """Encode as the JSON object that clients get."""
        return orjson.dumps(
            {
                "epoch": self.epoch,
                "sequence": self.sequence,
                "start": self.start_ms,
                "end": self.end_ms,
                "instruments": self.instruments,
                **self.lists,
            }
        )


def row(bar: Bar) -> Mapping[str, Any]:
    """Return a row of a list."""
    fields = bar.to_object()
    names = ("open", "high", "low", "close", "volume", "value", "trades", "vwap")
    change, percent = change_of(bar) or (None, None)
    return {
        "isin": bar.isin,
        **{name: fields[name] for name in names},
        "change": number(change),
        "percent": number(percent),
    }
