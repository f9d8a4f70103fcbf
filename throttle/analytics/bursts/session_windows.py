"""From seconds of bursts to bursts that have ended, in Spark: session windows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from throttle.analytics.batch_bars import shown_bars
from throttle.analytics.bursts.burst_partials import NOTE_MS
from throttle.analytics.partials.partial_bars import NOTE_KEY
from throttle.analytics.tumbling_bars import aggregates, is_no_tick, selected
from throttle.contract.bars import Bar


def session_bursts(
    partials: DataFrame, gap_ms: int, least_trades: int, close_after_ms: int
) -> DataFrame:
    """Return the bursts that have ended, for output mode ``append``.

    A burst is a session window; of fewer trades it is none. Columns are those of
    ``selected``, but a burst ends with its last trade. A batch's tick is at its end,
    and no trade is later: ``close_after_ms`` before it, the watermark is the log's
    clock, by which the source has left out what came too late.
    """
    marked = partials.withWatermark("at", f"{close_after_ms} milliseconds")
    is_note = F.col("isin").startswith(NOTE_KEY)
    lasts_us = F.col("last_time") - F.col("first_time") + F.lit(gap_ms * 1000)
    own_us = F.lit(NOTE_MS * 1000)
    gap = F.when(is_note, own_us).otherwise(lasts_us)
    window = F.session_window("at", F.concat(gap, F.lit(" microseconds")))
    rows = marked.where(is_no_tick())
    bursts = rows.groupBy(window.alias("window"), "isin").agg(*aggregates())
    counted = bursts.where(
        F.col("note").isNotNull() | (F.col("trades") >= least_trades)
    )
    return selected(counted).withColumn("end_ms", F.col("end_ms") - gap_ms)


def open_bursts(rows: pa.Table, settings: Mapping[str, Any]) -> Sequence[Bar]:
    """Return the bursts of a state, from their first to their last trade.

    ``settings`` says ``burst_gap_ms``.
    """
    gap_ms = int(settings.get("burst_gap_ms", 0))
    bars = shown_bars(rows, settings)
    return [replace(bar, end_ms=bar.end_ms - gap_ms) for bar in bars]
