"""Starts the streaming query of each product: source, window, sink."""

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from throttle.analytics.log_source import FORMAT, PartialOptions
from throttle.analytics.window_transforms import (
    bars_of,
    bursts_of,
    trades_of,
)
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.settings import AnalyticsSettings
from throttle.spark.options import SourceOptions

_STATE = "spark.sql.streaming.stateStore"

PROVIDER = f"{_STATE}.providerClass"
"""The option that says where Spark keeps the newest state."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

PARTITIONS = "spark.sql.shuffle.partitions"
"""The option that says in how many parts the state of a query is."""

Sink = Callable[[DataFrame, int], None]


def conf_of(settings: AnalyticsSettings, product: str) -> dict[str, str]:
    """Return what Spark is told of a product's query and its state.

    What ``spark_conf`` says wins.
    """
    own = {
        PARTITIONS: "2",
        PROVIDER: ROCKSDB,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE}.rocksdb.maxMemoryUsageMB": "64",
        # Bursts come in a batch of their own, after the one that ends them.
        "spark.sql.streaming.noDataMicroBatches.enabled": str(
            product == "bursts"
        ).lower(),
    }
    return {**own, **settings.spark_conf}


def partial_options(
    settings: AnalyticsSettings, log: SourceOptions, product: str
) -> PartialOptions:
    """Return the options of a product's source."""
    every_ms = settings.movers_every_s * 1000
    return PartialOptions(
        log,
        product,
        every_ms if product == "movers" else settings.analytics_batch_ms,
        CLOSE_AFTER_MS,
        settings.bars_ms,
        settings.lateness_s * 1000,
        settings.movers_span_s * 1000,
        settings.burst_gap_ms,
        settings.start,
    )


def kept_ms(settings: AnalyticsSettings) -> int:
    """Return how long after its end a bar stays in the state.

    As long as a trade may amend it; trades may be stamped ahead of the log's clock, and
    with them the watermark.
    """
    return settings.lateness_s * 1000 + CLOSE_AFTER_MS + settings.max_ahead_ms


def trades_kept_ms(settings: AnalyticsSettings) -> int:
    """Return how long after it was made a trade stays in the state of moves.

    Two spans before what is judged next; the watermark may be as far ahead of that as
    trades are waited for.
    """
    return 2 * settings.move_span_ms + CLOSE_AFTER_MS


def start_query(
    spark: SparkSession,
    settings: AnalyticsSettings,
    product: str,
    log: SourceOptions,
    sink: Any,
    checkpoint: str,
) -> StreamingQuery:
    """Start a product's query; a checkpoint that is there says where it goes on."""
    options = partial_options(settings, log, product)
    for name, value in conf_of(settings, product).items():
        if name.startswith("spark.sql."):
            # The query keeps what the session says now.
            spark.conf.set(name, value)
    rows = spark.readStream.format(FORMAT).options(**options.to_spark()).load()
    if product == "bars":
        windows, mode = bars_of(rows, settings.bars_ms, kept_ms(settings)), "update"
    elif product == "movers":
        # A pane is needed for as long as a span to come holds it.
        windows = bars_of(rows, options.batch_ms, options.span_ms)
        mode = "update"
    elif product == "moves":
        windows, mode = trades_of(rows, trades_kept_ms(settings)), "append"
    else:
        windows = bursts_of(
            rows, options.gap_ms, settings.burst_trades, options.close_after_ms
        )
        mode = "append"
    return (
        windows.writeStream.outputMode(mode)
        .foreachBatch(sink)
        .queryName(product)
        .option("checkpointLocation", checkpoint)
        .start()
    )
