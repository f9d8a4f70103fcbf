"""The trades of two spans, in Spark: kept in its state, given out once."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from throttle.analytics.partials.partial_bars import NOTE_KEY
from throttle.analytics.state import state_of
from throttle.analytics.tumbling_bars import is_no_tick


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
    """Return the trades that the state held after a batch (``state_of``), in no order.

    Columns are those that ``kept_trades`` returns.
    """
    trades = state_of(spark, checkpoint, batch_id).select("key.*")
    return trades.where(~F.col("isin").startswith(NOTE_KEY)).toArrow()
