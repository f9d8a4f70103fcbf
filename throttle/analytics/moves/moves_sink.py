"""What Spark calls with every batch of trades: the moves they complete, once each."""

from collections.abc import Callable, Sequence
from typing import Any

import orjson
import pyarrow as pa

from throttle.analytics.final_sinks import FinalSink
from throttle.analytics.moves.move_rule import MoveRule
from throttle.analytics.moves.recent_trades import SCHEMA, RecentTrades
from throttle.analytics.product_publisher import BatchChanges, ProductPublisher
from throttle.contract.products.moves import Move
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.settings import AnalyticsSettings


class MovesSink(FinalSink[Move]):
    """Each move, once; the stream keeps the newest, a message those of its batch.

    ``state`` returns the trades that Spark's state held after a batch, with the columns
    of ``recent_trades.SCHEMA``. It is asked once; from then on the sink has them.
    """

    def __init__(
        self,
        settings: AnalyticsSettings,
        publisher: ProductPublisher,
        retry: Callable[[Callable[[], Any]], Any],
        report_to: Callable[[BatchNote], None] | None,
        state: Callable[[int], pa.Table],
    ) -> None:
        super().__init__(settings, publisher, retry, report_to)
        self._rule = MoveRule(settings.move_span_ms * 1_000, settings.move_percent)
        self._state = state
        self._recent = RecentTrades(self._rule, SCHEMA.empty_table())
        self._batch = -1

    def found(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Move]:
        """Return the moves whose last trade the log's clock has passed in a batch."""
        if self._batch != batch_id - 1:
            # A job that has started anew, or a batch that is run again.
            self._recent = RecentTrades(self._rule, self._held(batch_id - 1))
        after_ms = self._settings.close_after_ms
        since_us, until_us = (
            (cut.end_ms - after_ms) * 1_000 for cut in (note.start, note.end)
        )
        moves = self._recent.moves(rows, since_us, until_us)
        self._batch = batch_id
        return moves

    def _held(self, batch_id: int) -> pa.Table:
        return SCHEMA.empty_table() if batch_id < 0 else self._state(batch_id)

    def changes(self, found: Sequence[Move], clock_ms: int) -> BatchChanges:
        """Return what moves change; those that would not be kept are in neither."""
        key = AnalyticsKeys(self._settings.namespace).moves
        kept = self._settings.moves_kept
        lines = [move.encode() for move in found[-kept:]]
        fields = {"clock": clock_ms, "found": len(found), "moves": len(lines)}
        return BatchChanges(
            b"{",
            b"\n".join([b"," + orjson.dumps(fields)[1:], *lines]),
            [("XADD", key, "MAXLEN", "~", kept, "*", "move", line) for line in lines],
        )
