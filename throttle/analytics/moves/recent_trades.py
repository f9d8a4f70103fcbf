"""The trades of two spans, of all instruments, and the moves among them. Pure.

A trade is judged when the log's clock has passed its time: whoever could come before it
has come by then, or is too late (``SingleTrades``).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.moves.move_rule import MoveRule, PricedTrade, judged, moves_of
from throttle.analytics.partials.partial_rule import FinalRule
from throttle.contract.bars import FRACTION_DIGITS, number
from throttle.contract.products.movers import change_percent
from throttle.contract.products.moves import Move
from throttle.window.row_schema import records

SCHEMA = pa.schema(
    [
        ("isin", pa.string()),
        ("time", pa.int64()),
        ("seq", pa.int64()),
        ("position", pa.int64()),
        ("price", pa.decimal128(38, FRACTION_DIGITS)),
    ]
)


@dataclass(frozen=True, slots=True)
class SingleTrades(FinalRule):
    """A partial bar for each trade, at the millisecond in which it was made.

    Spark gets those that count for the last price: no other moves it.
    """

    is_combined: ClassVar[bool] = False

    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the milliseconds, and their ends, after which trades are judged."""
        return made_ms, pc.add(made_ms, pa.scalar(1, pa.int64()))

    def finish(self, partials: pa.Table) -> pa.Table:
        """Return the partial bars that have a price."""
        return partials.filter(pc.is_valid(partials["open"]))


class RecentTrades:
    """Trades that were judged up to a moment ago, and those that will be.

    ``trades`` has the columns of ``SCHEMA``, ``time`` in microseconds since 1970. Two
    spans of it are ``kept``: a trade's own span, and that of the trade before it.
    """

    def __init__(self, rule: MoveRule, trades: pa.Table) -> None:
        self._rule = rule
        self.kept = trades.select(SCHEMA.names).cast(SCHEMA)

    def moves(self, trades: pa.Table, since_us: int, until_us: int) -> list[Move]:
        """Take in trades; return the moves completed in ``[since_us, until_us)``.

        Moves are in the order of their ends, a rise before a fall. From then on
        ``since_us`` must not be before this ``until_us``.
        """
        every = pa.concat_tables([self.kept, trades.select(SCHEMA.names).cast(SCHEMA)])
        recent = _since(every, since_us - 2 * self._rule.span_us)
        until = pa.scalar(until_us, pa.int64())
        moves = self._judge(recent.filter(pc.less(recent["time"], until)), since_us)
        self.kept = _since(recent, until_us - 2 * self._rule.span_us)
        return sorted(moves, key=lambda move: (move.end_us, move.isin, move.seq))

    def _judge(self, trades: pa.Table, since_us: int) -> Iterator[Move]:
        isins = pa.array(self._instruments_far_apart(trades), pa.string())
        some = trades.filter(pc.is_in(trades["isin"], isins))
        for isin, ordered in _by_instrument(some):
            yield from moves_of(isin, ordered, self._rule, since_us)

    def _instruments_far_apart(self, trades: pa.Table) -> Iterable[str]:
        """Return the instruments whose extremes allow a move: few, as a rule."""
        ends = trades.group_by("isin", use_threads=False).aggregate(
            [("price", "min"), ("price", "max")]
        )
        for isin, low, high in records(ends, ("isin", "price_min", "price_max")):
            # Of a fall by as many per cent the rise back is one of more.
            if self._rule.is_met(low, high):
                yield isin


def _since(trades: pa.Table, since_us: int) -> pa.Table:
    since = pa.scalar(since_us, pa.int64())
    return trades.filter(pc.greater_equal(trades["time"], since))


def _by_instrument(
    trades: pa.Table,
) -> Iterator[tuple[str, Iterator[PricedTrade]]]:
    """Yield each instrument with its trades in their order."""
    ordered = trades.sort_by([(name, "ascending") for name in SCHEMA.names])
    for isin, own in groupby(records(ordered, SCHEMA.names), itemgetter(0)):
        yield isin, (PricedTrade(*row[1:]) for row in own)


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


def held_trades(trades: pa.Table, settings: Mapping[str, Any]) -> Sequence[HeldTrade]:
    """Return trades (``SCHEMA``) with the extremes of their spans, oldest first."""
    span_us = int(settings.get("move_span_ms", 0)) * 1_000
    held = [
        HeldTrade(isin, trade, low.price, high.price)
        for isin, ordered in _by_instrument(trades)
        for trade, low, high in judged(ordered, span_us)
    ]
    return sorted(held, key=attrgetter("trade.time_us", "isin", "trade"))
