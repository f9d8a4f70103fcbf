"""From partial bars to bars, in Spark: windows of one length, and what its state holds.

Spark keeps the sums in its state store. What comes too late is left out by the source
(``partial_rule.py``), by a rule that does not depend on how the log was cut into
batches; Spark's watermark only says what state may go, and never drops a row.

Spark's own source says what the state holds, in a batch query, while the streaming
query runs or not; only batches that Spark has committed can be asked for.
"""

from typing import cast

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from throttle.analytics.partials.partial_bars import COUNTS, NOTE_KEY, SUMS, TICK_KEY

_OPENED = ("open_time", "open_seq", "open_position", "open")
SUMMED = (*SUMS, *COUNTS, "note")
_CLOSED = ("close_time", "close_seq", "close_position", "close")

# The other buffers of ``aggregates``, in their order.
_BUFFERS = (
    *("high", "low", "volume", "has_volume", "value", "has_value"),
    *(*COUNTS, "note"),
)

# A session's key holds its start only: the whole of it stands before the buffers.
_OF_SESSIONS = ("session_window", "isin")


def tumbling_bars(partials: DataFrame, bars_ms: int, kept_ms: int) -> DataFrame:
    """Return the bars that a batch has changed, for output mode ``update``.

    It needs the columns of ``partial_bars.ARROW_SCHEMA`` and returns those of
    ``selected``. The state keeps a bar for ``kept_ms`` after its end, by the log's
    clock. Panes of movers are bars, too.
    """
    window = F.window("at", f"{bars_ms} milliseconds").alias("window")
    marked = partials.withWatermark("at", f"{kept_ms} milliseconds")
    rows = marked.where(is_no_tick())
    return selected(rows.groupBy(window, "isin").agg(*aggregates()))


def is_no_tick() -> Column:
    """Return whether a row of the source is more than a tick."""
    # It names the time, too: otherwise Spark would ask it first, and the watermark
    # would not see the tick.
    return (F.col("isin") != TICK_KEY) | F.col("at").isNull()


def aggregates() -> list[Column]:
    """Return what Spark's state holds of each window and instrument, in this order."""
    # Of structs the one of nulls is the least.
    opened = F.when(F.col("open").isNotNull(), F.struct(*_OPENED))
    return [
        F.min(opened).alias("opened"),
        F.max(F.struct(*_CLOSED)).alias("closed"),
        F.max("high").alias("high"),
        F.min("low").alias("low"),
        # None once it does not fit, and never a wrong one.
        *(F.try_sum(name).alias(name) for name in SUMS),
        *(F.sum(name).alias(name) for name in COUNTS),
        F.max("note").alias("note"),
    ]


def selected(bars: DataFrame) -> DataFrame:
    """Return aggregated windows with the columns that ``batch_bars.py`` takes."""
    return bars.select(
        F.unix_millis("window.start").alias("start_ms"),
        F.unix_millis("window.end").alias("end_ms"),
        "isin",
        F.col("opened.open").alias("open"),
        "high",
        "low",
        F.col("closed.close").alias("close"),
        *SUMMED,
    )


def state_of(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> DataFrame:
    """Return Spark's rows of a checkpoint's state after a batch, by default the newest.

    ``checkpoint`` is a folder or an address.
    """
    reader = spark.read.format("statestore").option("path", checkpoint)
    if batch_id is not None:
        reader = reader.option("batchId", batch_id)
    return reader.load()


def bars_in_state(
    spark: SparkSession, checkpoint: str, batch_id: int | None = None
) -> pa.Table:
    """Return bars, panes or open bursts (``selected``) of a state (``state_of``)."""
    state = state_of(spark, checkpoint, batch_id)
    key, value = (cast(StructType, state.schema[n].dataType) for n in ("key", "value"))
    # A session ends a gap after its last trade.
    window = "key.window" if "window" in key.names else "of.session_window"
    rows = state.select("key", F.col("value").cast(_with_names(value)).alias("of"))
    bars = rows.select(
        F.col(window).alias("window"),
        "key.isin",
        *(f"of.{name}" for name in ("opened", "closed", "high", "low", *SUMMED)),
    )
    return selected(bars.where(~F.col("isin").startswith(NOTE_KEY))).toArrow()


def _with_names(buffers: StructType) -> str:
    """Return the type of a state's value with names of its own.

    Spark names them by function, several alike, and takes one for the other. Where the
    first and the last trade stand among them is its optimizer's matter.
    """
    names = iter(_BUFFERS)
    parts = []
    for field in buffers.fields:
        if field.name in _OF_SESSIONS:
            name = field.name
        elif isinstance(field.dataType, StructType):
            name = "opened" if field.dataType.names[0] == "open_time" else "closed"
        else:
            name = next(names)
        parts.append(f"{name}: {field.dataType.simpleString()}")
    return f"struct<{', '.join(parts)}>"
