"""The trades that the state of moves holds, with how far each price went. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

import orjson
import pyarrow as pa

from throttle.analytics.moves.move_rule import PricedTrade, judged
from throttle.analytics.moves.recent_trades import SCHEMA
from throttle.contract.bars import number
from throttle.contract.products.movers import change_percent


@dataclass(frozen=True, slots=True)
class HeldTrade:
    """A trade in the state, ``lowest`` and ``highest`` of the span that ends with it.

    Of that span as far as the state holds it: of the oldest trades it may lack some.
    """

    isin: str
    trade: PricedTrade
    lowest: Decimal
    highest: Decimal

    @property
    def rise(self) -> Decimal:
        """Return by how many per cent it is above the lowest price (4 digits)."""
        return change_percent(self.lowest, self.trade.price)

    @property
    def fall(self) -> Decimal:
        """Return by how many per cent it is below the highest price: 0 or negative."""
        return change_percent(self.highest, self.trade.price)

    def to_object(self) -> Mapping[str, Any]:
        """Return the fields that are shown; ``time`` is microseconds since 1970."""
        return {
            "isin": self.isin,
            "time": self.trade.time_us,
            "seq": self.trade.seq,
            "price": number(self.trade.price),
            "lowest": number(self.lowest),
            "highest": number(self.highest),
            "rise": number(self.rise),
            "fall": number(self.fall),
        }

    def body(self) -> bytes:
        """Return them as a JSON object."""
        return orjson.dumps(self.to_object())


def held_trades(trades: pa.Table, settings: Mapping[str, Any]) -> Sequence[HeldTrade]:
    """Return trades with the extremes of their spans, the oldest first.

    ``trades`` has the columns of ``recent_trades.SCHEMA``, in any order. ``settings``
    says ``move_span_ms``.
    """
    span_us = int(settings.get("move_span_ms", 0)) * 1_000
    columns = (trades[name].to_pylist() for name in SCHEMA.names)
    rows = sorted(zip(*columns, strict=True))
    held = [
        HeldTrade(isin, trade, low.price, high.price)
        for isin, of_one in groupby(rows, itemgetter(0))
        for trade, low, high in judged((PricedTrade(*r[1:]) for r in of_one), span_us)
    ]
    return sorted(held, key=attrgetter("trade.time_us", "isin", "trade"))
