"""The job's own Spark session, for tests that run a job in it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from tests.quick_java import QUICK_OPTIONS
from throttle.settings import ThrottleSettings
from throttle.spark.java import find_java
from throttle.spark.session import create_session


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """Start a session and end it."""
    with tempfile.TemporaryDirectory(prefix="tt-") as folder:
        scratch = Path(folder)
        # Each query's open batch holds a slot, and tests run several queries at once.
        settings = ThrottleSettings(
            spark_master="local[8,2]",
            spark_conf={"spark.driver.extraJavaOptions": QUICK_OPTIONS},
        )
        session = create_session(settings, find_java(None, scratch), scratch)
        yield session
        session.stop()
