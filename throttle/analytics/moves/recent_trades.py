"""The trades of two spans, of all instruments, and the moves among them. Pure.

A trade is judged when the log's clock has passed its time: whoever could come before it
has come by then, or is too late (``partial_bars.single_trades``).
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.moves.move_rule import MoveRule, PricedTrade, moves_of
from throttle.contract.bars import FRACTION_DIGITS
from throttle.contract.products.moves import Move

SCHEMA = pa.schema(
    [
        ("isin", pa.string()),
        ("time", pa.int64()),
        ("seq", pa.int64()),
        ("position", pa.int64()),
        ("price", pa.decimal128(38, FRACTION_DIGITS)),
    ]
)


class RecentTrades:
    """Trades that were judged up to a moment ago, and those that will be.

    ``trades`` has the columns of ``SCHEMA``, ``time`` in microseconds since 1970. Two
    spans of it are kept: a trade's own span, and that of the trade before it.
    """

    def __init__(self, rule: MoveRule, trades: pa.Table) -> None:
        self._rule = rule
        self._trades = trades.select(SCHEMA.names).cast(SCHEMA)

    @property
    def count(self) -> int:
        """Return how many trades are kept."""
        return len(self._trades)

    def moves(self, trades: pa.Table, since_us: int, until_us: int) -> list[Move]:
        """Take in trades; return the moves completed in ``[since_us, until_us)``.

        Moves are in the order of their ends, a rise before a fall. From then on
        ``since_us`` must not be before this ``until_us``.
        """
        trades = trades.select(SCHEMA.names).cast(SCHEMA)
        recent = _since(
            pa.concat_tables([self._trades, trades]), since_us - 2 * self._rule.span_us
        )
        until = pa.scalar(until_us, pa.int64())
        moves = self._judge(recent.filter(pc.less(recent["time"], until)), since_us)
        self._trades = _since(recent, until_us - 2 * self._rule.span_us)
        return sorted(moves, key=lambda move: (move.end_us, move.isin, move.seq))

    def _judge(self, trades: pa.Table, since_us: int) -> Iterator[Move]:
        columns = ("time", "seq", "position", "price")
        order = [(name, "ascending") for name in ("isin", *columns)]
        isins = pa.array(self._instruments_far_apart(trades), pa.string())
        some = trades.filter(pc.is_in(trades["isin"], isins)).sort_by(order)
        rows = zip(*(some[name].to_pylist() for name in SCHEMA.names), strict=True)
        for isin, of_one in groupby(rows, itemgetter(0)):
            ordered = (PricedTrade(*row[1:]) for row in of_one)
            yield from moves_of(isin, ordered, self._rule, since_us)

    def _instruments_far_apart(self, trades: pa.Table) -> Iterable[str]:
        """Return the instruments whose extremes allow a move: few, as a rule."""
        ends = trades.group_by("isin", use_threads=False).aggregate(
            [("price", "min"), ("price", "max")]
        )
        names = ("isin", "price_min", "price_max")
        columns = (ends[name].to_pylist() for name in names)
        for isin, low, high in zip(*columns, strict=True):
            # Of a fall by as many per cent the rise back is one of more.
            if self._rule.is_met(low, high):
                yield isin


def _since(trades: pa.Table, since_us: int) -> pa.Table:
    since = pa.scalar(since_us, pa.int64())
    return trades.filter(pc.greater_equal(trades["time"], since))
