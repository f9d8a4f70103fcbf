"""The streaming query of a product: source, windows, sink; its checkpoint and state.

State is partitioned and keyed by what it was begun with. So a query's checkpoint
carries a note of its settings, and is refused under others, with a sentence.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from throttle.analytics.partials.log_source import FORMAT, PartialOptions
from throttle.analytics.product import Product, StateRow
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.settings import AnalyticsSettings
from throttle.spark.options import SourceOptions
from throttle.spark.own_session import SPARK_ERRORS, own_spark
from throttle.spark.query import StreamSink, first_line, start_stream

_STATE = "spark.sql.streaming.stateStore"

PROVIDER = f"{_STATE}.providerClass"
"""The option that says where Spark keeps the newest state."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

PARTITIONS = "spark.sql.shuffle.partitions"
"""The option that says in how many parts the state of a query is."""

_NOTE = "tickthrottle.json"


def conf_of(settings: AnalyticsSettings, product: Product) -> dict[str, str]:
    """Return what Spark is told of a product's query; what ``spark_conf`` says wins."""
    has_batches_without_data = str(product.ends_in_batches_without_data).lower()
    own = {
        PARTITIONS: "2",
        PROVIDER: ROCKSDB,
        f"{_STATE}.rocksdb.changelogCheckpointing.enabled": "true",
        f"{_STATE}.rocksdb.boundedMemoryUsage": "true",
        f"{_STATE}.rocksdb.maxMemoryUsageMB": "64",
        # Of few rows, code that is made for a batch's plan costs more than it saves.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.streaming.noDataMicroBatches.enabled": has_batches_without_data,
    }
    return {**own, **settings.spark_conf}


def tell_session(spark: SparkSession, conf: Mapping[str, str]) -> None:
    """Set what a query that is started next keeps; the rest is Spark's own."""
    for name, value in conf.items():
        if name.startswith("spark.sql."):
            spark.conf.set(name, value)


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
    tell_session(spark, conf_of(settings, product))
    rows = spark.readStream.format(FORMAT).options(**options.to_spark()).load()
    windows = product.windows(rows, settings, product.kept_ms(settings))
    return start_stream(windows, sink, checkpoint, product.mode, product.name)


class BadCheckpoint(RuntimeError):
    """The checkpoint was made for something else; the message says what to do."""


def address_of(settings: AnalyticsSettings, product: str) -> str:
    """Return where the checkpoint of a product's query is, as Spark takes it."""
    root = settings.analytics_checkpoint
    if not root or root.startswith("/"):
        folder = settings.state_dir / "analytics"
        root = f"file://{root}" if root else folder.resolve().as_uri()
    return f"{root.rstrip('/')}/{product}"


def settings_of(
    settings: AnalyticsSettings, product: Product, log_id: str
) -> dict[str, Any]:
    """Return what a product's checkpoint depends on."""
    conf = conf_of(settings, product)
    return {
        "form": product.form,
        **{name: getattr(settings, name) for name in product.state_settings},
        "close_after_ms": CLOSE_AFTER_MS,
        "state_store": "rocksdb" if conf[PROVIDER] == ROCKSDB else conf[PROVIDER],
        "analytics_partitions": int(conf[PARTITIONS]),
        "log": log_id if log_id.startswith("kafka:") else "redis",
    }


def noted_settings(spark: SparkSession, address: str) -> Mapping[str, Any]:
    """Return the settings that a checkpoint was made for; empty if nothing is noted."""
    files, path = _note_of(spark, address)
    if not files.exists(path):
        return {}
    stream = files.open(path)
    noted: Mapping[str, Any] = orjson.loads(bytes(stream.readAllBytes()))
    stream.close()
    return noted


def _note_of(spark: SparkSession, address: str) -> tuple[Any, Any]:
    """Return the file system of a checkpoint, and the path of its note there."""
    path = _path(spark, f"{address}.{_NOTE}")
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), path


def _path(spark: SparkSession, address: str) -> Any:
    jvm: Any = spark.sparkContext._jvm
    return jvm.org.apache.hadoop.fs.Path(address)


def check(spark: SparkSession, address: str, settings: Mapping[str, Any]) -> None:
    """Note a new checkpoint's settings, or compare an old one's. Raises BadCheckpoint.

    The note is beside Spark's own files, on whatever file system they are.
    """
    files, path = _note_of(spark, address)
    if not files.exists(_path(spark, f"{address}/metadata")):
        # Spark has not begun: whatever was noted, nothing depends on it yet.
        files.mkdirs(path.getParent())
        stream = files.create(path, True)
        stream.write(orjson.dumps(settings))
        stream.close()
        return
    noted = noted_settings(spark, address)
    others = [
        f"{name} {value} (it was {noted.get(name)})"
        for name, value in settings.items()
        if noted.get(name) != value
    ]
    if others:
        raise BadCheckpoint(
            f"checkpoint {address}: was made for other settings: {'; '.join(others)}; "
            "set them back, or remove it: the windows are then computed again from "
            "what the log still holds"
        )


class NoState(RuntimeError):
    """There is no state to be read; the message says why."""


def ask_state(
    settings: AnalyticsSettings,
    product: Product,
    batch_id: int | None = None,
    isin: str | None = None,
) -> Sequence[StateRow]:
    """Start a Spark and return what a product's state held after a batch.

    The oldest first; by default after the newest committed batch. Raises NoState.
    """
    address = address_of(settings, product.name)
    with own_spark(settings, NoState) as (spark, _):
        try:
            rows = product.state(spark, address, batch_id)
            # By the settings of the query, whatever this process is told.
            shown = product.shown(rows, noted_settings(spark, address))
        except SPARK_ERRORS as error:
            raise NoState(f"checkpoint {address}: {first_line(error)}") from error
    return [row for row in shown if isin in (None, row.isin)]
