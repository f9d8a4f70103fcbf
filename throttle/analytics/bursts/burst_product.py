"""Bursts: session windows, told when they have ended."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from throttle.analytics.batch_bars import bars_of, shown_bars
from throttle.analytics.bursts.burst_partials import NOTE_MS, BurstPartials
from throttle.analytics.partials.partial_bars import NOTE_KEY
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import BatchChanges, event_changes
from throttle.analytics.product_sink import ProductSink
from throttle.analytics.tumbling_bars import (
    aggregates,
    bars_in_state,
    is_no_tick,
    selected,
)
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.tally import BatchNote


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
    gap = F.when(is_note, F.lit(NOTE_MS * 1000)).otherwise(lasts_us)
    window = F.session_window("at", F.concat(gap, F.lit(" microseconds")))
    rows = marked.where(is_no_tick())
    bursts = rows.groupBy(window.alias("window"), "isin").agg(*aggregates())
    counted = bursts.where(
        F.col("note").isNotNull() | (F.col("trades") >= least_trades)
    )
    return selected(counted).withColumn("end_ms", F.col("end_ms") - gap_ms)


def open_bursts(rows: pa.Table, settings: Mapping[str, Any]) -> Sequence[Bar]:
    """Return the bursts of a state, from first to last trade, by ``burst_gap_ms``."""
    gap_ms = int(settings.get("burst_gap_ms", 0))
    bars = shown_bars(rows, settings)
    return [replace(bar, end_ms=bar.end_ms - gap_ms) for bar in bars]


class BurstSink(ProductSink[Bar]):
    """The stream keeps the newest bursts, a message has those of its batch."""

    def results(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Bar]:
        """Return the bursts as bars; Spark gives them out in a batch of their own."""
        return list(bars_of(rows))

    def changes(self, results: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the bursts that had ended by the clock, in the order of their ends."""
        ended = sorted(results, key=lambda bar: (bar.end_ms, bar.isin))
        lines = [TradingBurst(bar).encode() for bar in ended]
        fields = {"clock": clock_ms, "bursts": len(lines)}
        key, most = self._keys.bursts, self._settings.events_kept
        return event_changes(key, most, "burst", fields, lines)


BURSTS = Product(
    name="bursts",
    form=2,
    state_settings=("burst_gap_ms",),
    rule=lambda settings: BurstPartials(
        settings.analytics_batch_ms, CLOSE_AFTER_MS, settings.burst_gap_ms
    ),
    kept_ms=lambda settings: CLOSE_AFTER_MS,
    windows=lambda rows, settings, kept_ms: session_bursts(
        rows, settings.burst_gap_ms, settings.burst_trades, kept_ms
    ),
    mode="append",
    sink=BurstSink,
    state=bars_in_state,
    shown=open_bursts,
    ends_in_batches_without_data=True,
)
