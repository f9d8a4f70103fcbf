"""A Spark session for the tests that need one."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from throttle.java import find_java
from throttle.session import create_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, started once."""
    with tempfile.TemporaryDirectory(prefix="tt-") as folder:
        scratch = Path(folder)
        session = create_session(find_java(None, scratch), 512, scratch)
        yield session
        session.stop()
