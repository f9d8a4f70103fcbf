"""Which trades of an instrument complete a move. Pure.

Every trade has a window of its own, the span that ends with it. A trade completes a
rise if it is as far above the lowest price of its span as the rule says, and a fall if
it is as far below the highest. A price that stays up is told once: not if the trade
before has completed a rise, too.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from throttle.contract.bars import EXACT, subtract
from throttle.contract.products.moves import Move

_HUNDRED = Decimal(100)


class PricedTrade(NamedTuple):
    """A trade of an instrument, made at ``time_us``; ordered as these fields are."""

    time_us: int
    seq: int
    position: int
    price: Decimal


@dataclass(frozen=True, slots=True)
class MoveRule:
    """A move is of ``percent`` or more, between trades ``span_us`` apart at most."""

    span_us: int
    percent: Decimal

    def is_met(self, before: Decimal, after: Decimal) -> bool:
        """Tell whether a price went far enough, up or down; nothing is rounded."""
        change = abs(subtract(after, before))
        least = EXACT.multiply(self.percent, before)
        return EXACT.multiply(change, _HUNDRED) >= least


class JudgedTrade(NamedTuple):
    """A trade, and the latest with the lowest and the highest price of its span."""

    trade: PricedTrade
    low: PricedTrade
    high: PricedTrade


def judged(trades: Iterable[PricedTrade], span_us: int) -> Iterator[JudgedTrade]:
    """Yield an instrument's ordered trades with the extremes of the spans they end."""
    lowest = _Extreme(span_us, lambda price, other: price <= other)
    highest = _Extreme(span_us, lambda price, other: price >= other)
    for trade in trades:
        yield JudgedTrade(trade, lowest.with_trade(trade), highest.with_trade(trade))


def moves_of(
    isin: str, trades: Iterable[PricedTrade], rule: MoveRule, since_us: int
) -> Iterator[Move]:
    """Yield the moves of an instrument that trades since a moment have completed.

    ``trades`` are in their order, none is missing in the two spans before that moment.
    """
    has_risen = has_fallen = False
    for trade, low, high in judged(trades, rule.span_us):
        rises = low.price < trade.price and rule.is_met(low.price, trade.price)
        falls = high.price > trade.price and rule.is_met(high.price, trade.price)
        if trade.time_us >= since_us:
            if rises and not has_risen:
                yield _move(isin, low, trade)
            if falls and not has_fallen:
                yield _move(isin, high, trade)
        has_risen, has_fallen = rises, falls


def _move(isin: str, first: PricedTrade, last: PricedTrade) -> Move:
    times = first.time_us, last.time_us
    return Move(isin, *times, last.seq, first.price, last.price)


class _Extreme:
    """The lowest, or highest, price of the span that ends with the newest trade."""

    def __init__(
        self, span_us: int, replaces: Callable[[Decimal, Decimal], bool]
    ) -> None:
        self._span_us = span_us
        self._replaces = replaces
        # Those that are, or once older ones have left the span will be, the extreme.
        self._trades: deque[PricedTrade] = deque()

    def with_trade(self, trade: PricedTrade) -> PricedTrade:
        """Return the extreme of a trade's span; of equal prices the latest trade."""
        trades = self._trades
        while trades and self._replaces(trade.price, trades[-1].price):
            trades.pop()
        trades.append(trade)
        while trades[0].time_us < trade.time_us - self._span_us:
            trades.popleft()
        return trades[0]
