"""Moves: sliding windows, one for each trade, over trades that Spark's state keeps."""

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from throttle.analytics.moves.move_rule import MoveRule
from throttle.analytics.moves.recent_trades import (
    SCHEMA,
    RecentTrades,
    SingleTrades,
    held_trades,
)
from throttle.analytics.partials.partial_bars import NOTE_KEY
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import BatchChanges, event_changes
from throttle.analytics.product_sink import HoldingSink
from throttle.analytics.tumbling_bars import is_no_tick, state_of
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.contract.products.moves import Move
from throttle.contract.tally import BatchNote


def kept_trades(trades: DataFrame, kept_ms: int) -> DataFrame:
    """Return the trades of a batch, for output mode ``append``; the state keeps them.

    Columns are ``isin``, ``time`` (us), ``seq``, ``position``, ``price`` and ``note``.
    Spark has no sliding window; what it has is an operator that keeps rows, for
    ``kept_ms`` by the log's clock, to leave out those that come twice. Two rows that
    are the same in all of these columns would be one trade for a move as well.
    """
    marked = trades.withWatermark("at", f"{kept_ms} milliseconds")
    rows = marked.where(is_no_tick()).select(
        "at",
        "isin",
        F.col("open_time").alias("time"),
        F.col("open_seq").alias("seq"),
        F.col("open_position").alias("position"),
        F.col("open").alias("price"),
        "note",
    )
    return rows.dropDuplicates(rows.columns)


def trades_in_state(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> pa.Table:
    """Return the trades (``kept_trades``) of a state (``state_of``), in no order."""
    trades = state_of(spark, checkpoint, batch_id).select("key.*")
    return trades.where(~F.col("isin").startswith(NOTE_KEY)).toArrow()


class MovesSink(HoldingSink[Move]):
    """Each move, once; the stream keeps the newest, a message those of its batch."""

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
        key, most = self._keys.moves, self._settings.events_kept
        lines = [move.encode() for move in results[-most:]]
        fields = {"clock": clock_ms, "found": len(results), "moves": len(lines)}
        return event_changes(key, most, "move", fields, lines)


MOVES = Product(
    name="moves",
    form=1,
    state_settings=("move_span_ms", "analytics_batch_ms"),
    rule=lambda settings: SingleTrades(settings.analytics_batch_ms, CLOSE_AFTER_MS),
    # Two spans before what is judged next; the watermark may be as far ahead of that
    # as trades are waited for.
    kept_ms=lambda settings: 2 * settings.move_span_ms + CLOSE_AFTER_MS,
    windows=lambda rows, settings, kept_ms: kept_trades(rows, kept_ms),
    mode="append",
    sink=MovesSink,
    state=trades_in_state,
    shown=held_trades,
)
