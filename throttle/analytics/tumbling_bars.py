"""From partial bars to bars, in Spark: one window after the other, all of one length.

Spark keeps the sums in its state store. What comes too late is left out by the source
(``partial_rule.py``), by a rule that does not depend on how the log was cut into
batches; Spark's watermark only says what state may go, and never drops a row.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from throttle.analytics.partials.partial_bars import COUNTS, SUMS, TICK_KEY

_OPENED = ("open_time", "open_seq", "open_position", "open")
SUMMED = (*SUMS, *COUNTS, "note")
_CLOSED = ("close_time", "close_seq", "close_position", "close")


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
