"""The Spark session, tuned for many small batches on one machine."""

import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from throttle.source import TradeLogSource

_CONFIG = {
    # Nothing listens that nobody asked for.
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # JVM and Python talk in small pieces: over TCP each waits 40 ms for a delayed
    # acknowledgement, over a Unix socket none does.
    "spark.python.unix.domain.socket.enabled": "true",
    # The default manager forks a `chmod` for every file it writes, 30 ms each.
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing."
        "FileSystemBasedCheckpointFileManager"
    ),
    # A batch is one task: no plan changes on the way, no waiting, no shuffle.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.locality.wait": "0",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.sql.streaming.stopTimeout": "5s",
    # A task gets a second attempt; local[n] alone gives it one.
    "spark.master": "local[2,2]",
}


def create_session(java_home: Path, memory_mb: int, scratch: Path) -> SparkSession:
    """Start Spark in this process with the trade log registered as a source.

    ``scratch`` is an existing folder for Spark's files and sockets; its path must be
    short (a socket's path has at most 107 bytes).
    """
    # Spark's launcher takes these from the environment only.
    os.environ["JAVA_HOME"] = str(java_home)
    os.environ["SPARK_HOME"] = str(_spark_home(scratch / "spark"))
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    builder = SparkSession.Builder().appName("tickthrottle")
    for name, value in _CONFIG.items():
        builder = builder.config(name, value)
    spark = (
        builder.config("spark.driver.memory", f"{memory_mb}m")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={scratch}")
        .config("spark.local.dir", str(scratch))
        .config("spark.python.unix.domain.socket.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .getOrCreate()
    )
    spark.dataSource.register(TradeLogSource)
    return spark


def _spark_home(folder: Path) -> Path:
    """Return a home of the installed Spark without its zipped Python package.

    The half dozen Python processes of a query then import the installed one, which is
    the same but compiled: half a second each.
    """
    folder.mkdir()
    installed = Path(pyspark.__file__).parent
    for name in ("bin", "jars"):
        (folder / name).symlink_to(installed / name, target_is_directory=True)
    return folder
