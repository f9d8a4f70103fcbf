"""The sink of moves: each move once, when its last trade is judged."""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from throttle.analytics.moves.move_rule import MoveRule
from throttle.analytics.moves.recent_trades import SCHEMA, RecentTrades
from throttle.analytics.product_publisher import BatchChanges
from throttle.analytics.product_sink import HoldingSink
from throttle.contract.products.moves import Move
from throttle.contract.tally import BatchNote


class MovesSink(HoldingSink[Move]):
    """Each move, once; the stream keeps the newest, a message those of its batch.

    Its state has the columns of ``recent_trades.SCHEMA``.
    """

    schema = SCHEMA

    def hold(self, rows: pa.Table) -> None:
        """Take the trades that were held before a batch."""
        settings = self._settings
        rule = MoveRule(settings.move_span_ms * 1_000, settings.move_percent)
        self._recent = RecentTrades(rule, rows)

    def advance(self, rows: pa.Table, note: BatchNote) -> Sequence[Move]:
        """Return the moves whose last trade the log's clock has passed in a batch."""
        since_ms, until_ms = map(self.clock_ms, (note.start, note.end))
        return self._recent.moves(rows, since_ms * 1_000, until_ms * 1_000)

    def changes(self, results: Sequence[Move], clock_ms: int) -> BatchChanges:
        """Return what moves change; those that would not be kept are in neither."""
        key, kept = self._keys.moves, self._settings.events_kept
        lines = [move.encode() for move in results[-kept:]]
        fields = {"clock": clock_ms, "found": len(results), "moves": len(lines)}
        return BatchChanges(
            b"{",
            b"\n".join([b"," + orjson.dumps(fields)[1:], *lines]),
            [("XADD", key, "MAXLEN", "~", kept, "*", "move", line) for line in lines],
        )
