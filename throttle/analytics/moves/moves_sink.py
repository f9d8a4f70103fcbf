"""What Spark calls with every batch of trades: the moves they complete, once each."""

from collections.abc import Sequence

import orjson
import pyarrow as pa

from throttle.analytics.final_sinks import HoldingSink
from throttle.analytics.moves.move_rule import MoveRule
from throttle.analytics.moves.recent_trades import SCHEMA, RecentTrades
from throttle.analytics.product_publisher import BatchChanges
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.contract.products.moves import Move
from throttle.contract.redis_keys import AnalyticsKeys
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

    def take(self, rows: pa.Table, note: BatchNote) -> Sequence[Move]:
        """Return the moves whose last trade the log's clock has passed in a batch."""
        since_us, until_us = (
            (cut.end_ms - CLOSE_AFTER_MS) * 1_000 for cut in (note.start, note.end)
        )
        return self._recent.moves(rows, since_us, until_us)

    def changes(self, found: Sequence[Move], clock_ms: int) -> BatchChanges:
        """Return what moves change; those that would not be kept are in neither."""
        key = AnalyticsKeys(self._settings.namespace).moves
        kept = self._settings.events_kept
        lines = [move.encode() for move in found[-kept:]]
        fields = {"clock": clock_ms, "found": len(found), "moves": len(lines)}
        return BatchChanges(
            b"{",
            b"\n".join([b"," + orjson.dumps(fields)[1:], *lines]),
            [("XADD", key, "MAXLEN", "~", kept, "*", "move", line) for line in lines],
        )
