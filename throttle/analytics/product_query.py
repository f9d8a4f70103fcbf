"""Starts the streaming query of a product: source, windows, sink."""

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from throttle.analytics.partials.log_source import FORMAT
from throttle.analytics.partials.partial_options import PartialOptions
from throttle.analytics.product import Product
from throttle.settings import AnalyticsSettings
from throttle.spark.options import SourceOptions
from throttle.spark.query import StreamSink, start_stream

_STATE = "spark.sql.streaming.stateStore"

PROVIDER = f"{_STATE}.providerClass"
"""The option that says where Spark keeps the newest state."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

PARTITIONS = "spark.sql.shuffle.partitions"
"""The option that says in how many parts the state of a query is."""


def conf_of(settings: AnalyticsSettings, product: Product) -> dict[str, str]:
    """Return what Spark is told of a product's query and its state.

    What ``spark_conf`` says wins.
    """
    has_batches_without_data = str(product.ends_in_batches_without_data).lower()
    own = {
        PARTITIONS: "2",
        PROVIDER: ROCKSDB,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE}.rocksdb.maxMemoryUsageMB": "64",
        "spark.sql.streaming.noDataMicroBatches.enabled": has_batches_without_data,
    }
    return {**own, **settings.spark_conf}


def start_product(
    spark: SparkSession,
    settings: AnalyticsSettings,
    product: Product,
    log: SourceOptions,
    sink: StreamSink,
    checkpoint: str,
) -> StreamingQuery:
    """Start a product's query; a checkpoint that is there says where it goes on."""
    options = PartialOptions.create(log, product.rule(settings), settings.start)
    for name, value in conf_of(settings, product).items():
        if name.startswith("spark.sql."):
            # The query keeps what the session says now.
            spark.conf.set(name, value)
    rows = spark.readStream.format(FORMAT).options(**options.to_spark()).load()
    windows = product.windows(rows, settings, product.kept_ms(settings))
    return start_stream(windows, sink, checkpoint, product.mode, product.name)
