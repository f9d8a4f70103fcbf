"""What was traded by what an item stands for. Pure."""

from collections.abc import Mapping
from decimal import Context, Decimal
from typing import Any, NamedTuple

_EXACT = Context(prec=1_000)
"""Python's own context would round a sum to 28 digits."""


class Traded(NamedTuple):
    """The sums of some trades: of their sizes, of price times size, both extremes.

    ``high`` and ``low`` are None if none of the trades counts for the range.
    """

    trades: int
    volume: Decimal
    value: Decimal
    high: Decimal | None
    low: Decimal | None

    def fold(self, other: "Traded") -> "Traded":
        """Return the sums of the trades of both, exactly."""
        return Traded(
            self.trades + other.trades,
            _EXACT.add(self.volume, other.volume),
            _EXACT.add(self.value, other.value),
            max(_known(self.high, other.high), default=None),
            min(_known(self.low, other.low), default=None),
        )


def _known(*extremes: Decimal | None) -> list[Decimal]:
    return [price for price in extremes if price is not None]


SUMS = Traded._fields[1:]


def traded(item: Mapping[str, Any]) -> Traded | None:
    """Return the sums of the trades that an item stands for.

    An item of its own trade alone says them by ``price`` and ``size``, any other one in
    full. None if it stands for no trades (it was known before), or nobody knows them.
    """
    trades = item.get("trades", 0)
    if "volume" in item:
        high, low = item.get("high"), item.get("low")
        return Traded(trades, item["volume"], item["value"], high, low)
    if trades != 1:
        return None
    price, size = item["price"], item["size"]
    return Traded(1, size, _EXACT.multiply(price, size), price, price)


def as_known(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as one that was known before: it stands for no trades."""
    return {k: v for k, v in item.items() if k not in SUMS} | {"trades": 0}
