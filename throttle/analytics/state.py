"""What the state of a query holds: asked of Spark's own source for it.

Only batches that Spark has committed can be asked for, in a batch query, while the
streaming query runs or not.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from throttle.analytics.batch_bars import split
from throttle.analytics.partial_reader import NOTE_KEY
from throttle.contract.bars import Bar

# The buffers of ``window_transforms._aggregates``, in their order: Spark names them by
# function.
_BUFFERS = (
    "opened",
    "high",
    "low",
    "closed",
    "volume",
    "has_volume",
    "value",
    "has_value",
    "trades",
    "late",
    "unfit",
    "note",
)


def state_of(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> DataFrame:
    """Return the bars or spans that a query's state held after a batch.

    By default after the newest one that was committed. Columns are those that
    ``window_transforms.py`` returns. ``checkpoint`` is the query's, a folder or an
    address.
    """
    reader = spark.read.format("statestore").option("path", checkpoint)
    if batch_id is not None:
        reader = reader.option("batchId", batch_id)
    rows = reader.load().select("key.window", "key.isin", "value.*")
    return (
        rows.toDF("window", "isin", *_BUFFERS)
        .where(~F.col("isin").startswith(NOTE_KEY))
        .select(
            F.unix_millis("window.start").alias("start_ms"),
            F.unix_millis("window.end").alias("end_ms"),
            "isin",
            F.col("opened.open").alias("open"),
            "high",
            "low",
            F.col("closed.close").alias("close"),
            "volume",
            "value",
            "trades",
            "late",
            "unfit",
            "note",
        )
    )


def bars_in_state(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> Sequence[Bar]:
    """Return the bars of ``state_of``, the oldest first."""
    bars, _ = split(state_of(spark, checkpoint, batch_id).toArrow())
    return sorted(bars, key=lambda bar: (bar.start_ms, bar.isin))
