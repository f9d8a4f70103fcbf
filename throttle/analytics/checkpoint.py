"""The checkpoint of a query: where it is, and for which settings it was made.

State is partitioned and keyed by what it was begun with. So a query's checkpoint
carries a note of its settings, and is refused under others, with a sentence.
"""

from collections.abc import Mapping
from typing import Any

import orjson
from pyspark.sql import SparkSession

from throttle.analytics.product import Product
from throttle.analytics.product_query import PARTITIONS, PROVIDER, ROCKSDB, conf_of
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.settings import AnalyticsSettings

_NOTE = "tickthrottle.json"


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


def differences(noted: Mapping[str, Any], settings: Mapping[str, Any]) -> list[str]:
    """Say in words what a checkpoint was made for that is wanted otherwise now."""
    return [
        f"{name} {settings[name]} (it was {noted.get(name)})"
        for name in settings
        if noted.get(name) != settings[name]
    ]


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
    jvm: Any = spark.sparkContext._jvm
    path = jvm.org.apache.hadoop.fs.Path(f"{address}.{_NOTE}")
    return path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration()), path


def check(spark: SparkSession, address: str, settings: Mapping[str, Any]) -> None:
    """Note a new checkpoint's settings, or compare an old one's. Raises BadCheckpoint.

    The note is beside Spark's own files, on whatever file system they are.
    """
    files, path = _note_of(spark, address)
    jvm: Any = spark.sparkContext._jvm
    begun = jvm.org.apache.hadoop.fs.Path(f"{address}/metadata")
    if not files.exists(begun):
        # Spark has not begun: whatever was noted, nothing depends on it yet.
        files.mkdirs(path.getParent())
        stream = files.create(path, True)
        stream.write(orjson.dumps(settings))
        stream.close()
        return
    others = differences(noted_settings(spark, address), settings)
    if others:
        raise BadCheckpoint(
            f"checkpoint {address}: was made for other settings: {'; '.join(others)}; "
            "set them back, or remove it: the windows are then computed again from "
            "what the log still holds"
        )
