"""From seconds of bursts to bursts that have ended, in Spark: session windows."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from throttle.analytics.bursts.burst_partials import NOTE_MS
from throttle.analytics.partials.partial_bars import NOTE_KEY
from throttle.analytics.tumbling_bars import aggregates, is_no_tick, selected


def session_bursts(
    partials: DataFrame, gap_ms: int, least_trades: int, close_after_ms: int
) -> DataFrame:
    """Return the bursts that have ended, for output mode ``append``.

    A burst is a session window; of fewer trades it is none. Columns are those of
    ``selected``, but a burst goes from its first to its last trade. A batch's tick is
    at its end, and no trade is later: ``close_after_ms`` before it, the watermark is
    the log's clock, by which the source has left out what came too late.
    """
    marked = partials.withWatermark("at", f"{close_after_ms} milliseconds")
    is_note = F.col("isin").startswith(NOTE_KEY)
    lasts_us = F.col("close_time") - F.col("open_time") + F.lit(gap_ms * 1000)
    own_us = F.lit(NOTE_MS * 1000)
    gap = F.when(is_note, own_us).otherwise(lasts_us)
    window = F.session_window("at", F.concat(gap, F.lit(" microseconds")))
    rows = marked.where(is_no_tick())
    bursts = rows.groupBy(window.alias("window"), "isin").agg(*aggregates())
    counted = bursts.where(
        F.col("note").isNotNull() | (F.col("trades") >= least_trades)
    )
    return selected(counted).withColumns(
        {
            "start_ms": F.floor(F.col("first_us") / 1000),
            "end_ms": F.floor(F.col("last_us") / 1000),
        }
    )
