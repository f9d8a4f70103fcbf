"""This version beside the one before: each part with the other's parts, there and back.

The one before is the commit that ``tests/previous_version.txt`` names; it runs from its
own files, with the libraries of this one.
"""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from io import BytesIO
from pathlib import Path

import pytest
import redis

from ingest.redis_keys import Keys
from tests.conftest import PATIENCE, eventually, leave_out
from tests.e2e.books import check_against_oracle
from tests.e2e.checker import Checker, checker_at
from tests.e2e.processes import Running, running_command
from tests.paths import ROOT
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(300),
]

W = 500
KEEP = {
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": "86400",
    "TICKTHROTTLE_WINDOW_LOG": "100000",
    "TICKTHROTTLE_WINDOW_MS": str(W),
    # However busy the machine is, no job counts as dead; one that stops gives it back.
    "TICKTHROTTLE_LEASE_MS": "30000",
}
FOLLOW = """
import asyncio, sys
from tickthrottle_client import TickClient

async def main():
    items = asyncio.Queue()
    async with TickClient(f"ws://127.0.0.1:{sys.argv[1]}/v1/stream") as ticks:
        ticks.subscribe(["*"], items.put_nowait)
        print((await items.get())["price"])

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of the version before."""
    commit = (ROOT / "tests" / "previous_version.txt").read_text("utf-8").strip()
    packed = subprocess.run(
        ["git", "-C", ROOT, "archive", commit], capture_output=True, check=False
    )
    if packed.returncode:
        leave_out(f"the way from {commit[:7]}, which a clone without history has not")
    folder = tmp_path_factory.mktemp("previous")
    with tarfile.open(fileobj=BytesIO(packed.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


class Versions:
    """Starts parts of either version on one server."""

    def __init__(self, previous: Path, redis_url: str, folder: Path) -> None:
        self._previous = previous
        self._folder = folder
        self._environment = {
            **KEEP,
            **QUICK_JAVA,
            "REDIS_URL": redis_url,
            "TICKTHROTTLE_STATE_DIR": str(folder / "state"),
        }
        (folder / "state").mkdir()
        (folder / "logs").mkdir()

    def start(
        self, command: str, *options: str, old: bool
    ) -> AbstractContextManager[Running]:
        """Start a part; a context manager that ends it."""
        words = [sys.executable, "-m", "tickthrottle", command, *options]
        environment = self._environment | self.path(old=old)
        root = self._previous if old else ROOT
        name = f"old-{command}" if old else command
        return running_command(self._folder / "logs", name, words, root, **environment)

    def follow(self, port: int, *, old: bool) -> None:
        """Have the client of a version print a price from a gateway."""
        done = subprocess.run(
            [sys.executable, "-c", FOLLOW, str(port)],
            env={**os.environ, **self.path(old=old)},
            capture_output=True,
            text=True,
            timeout=20 * PATIENCE,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert float(done.stdout) > 0

    def path(self, *, old: bool) -> dict[str, str]:
        """Return what makes Python take a version."""
        if not old:
            return {}
        folders = self._previous, self._previous / "clients" / "python"
        return {"PYTHONPATH": os.pathsep.join(map(str, folders))}


@pytest.fixture
def versions(previous: Path, redis_url: str, tmp_path: Path) -> Versions:
    """An empty server, and both versions."""
    return Versions(previous, redis_url, tmp_path)


@pytest.fixture
def ports() -> tuple[int, int]:
    """Where the old gateway is, and the new one."""
    return free_port(), free_port()


@pytest.fixture
def checkers(versions: Versions, ports: tuple[int, int]) -> Iterator[list[Checker]]:
    """A client of everything at a gateway of each version."""
    with ExitStack() as stack:
        gateways = [
            stack.enter_context(versions.start("gateway", "--port", str(port), old=old))
            for port, old in zip(ports, (True, False), strict=True)
        ]
        found = [checker_at(*one) for one in zip(ports, gateways, strict=True)]
        for checker in found:
            stack.callback(checker.close)
        yield found


def test_an_upgrade_and_the_way_back_cost_nothing(
    versions: Versions,
    ports: tuple[int, int],
    checkers: list[Checker],
    client: redis.Redis,
) -> None:
    """Jobs of the old, the new and the old version again, each the other's standby.

    A gateway of each follows all of them. Each window comes once, as the oracle says.
    The Python client of each gets prices from the gateway of the other.
    """
    with ExitStack() as stack:
        feed = stack.enter_context(
            versions.start("simulate", "--rate", "500", old=True)
        )
        job = stack.enter_context(versions.start("throttle", "--standby", old=True))
        job.wait_for('"event": "ready"', within_s=120)
        for old in (False, True):
            other = stack.enter_context(
                versions.start("throttle", "--standby", old=old)
            )
            other.wait_for('"event": "standby"', within_s=120)
            wait_for_windows(client, checkers, job)
            job.process.terminate()
            assert job.process.wait(timeout=20 * PATIENCE) == 0, job.log()
            wait_for_windows(client, checkers, other)
            job = other
        assert feed.process.poll() is None, feed.log()
        job.process.terminate()
        assert job.process.wait(timeout=20 * PATIENCE) == 0, job.log()
    for old, port in zip((False, True), ports, strict=True):
        versions.follow(port, old=old)
    check_against_oracle(client, W)


def wait_for_windows(
    client: redis.Redis, checkers: list[Checker], job: Running
) -> None:
    """Wait until a job has published for two seconds, and clients have all of it."""
    upto_ms = int(client.hget(Keys("tt").meta, "window") or 0) + 4 * W
    eventually(lambda: has_come(checkers, upto_ms, job), 60)
    assert [checker.problems for checker in checkers] == [[], []]


def has_come(checkers: list[Checker], upto_ms: int, job: Running) -> bool:
    """Tell whether all of them have a window, or something is wrong."""
    assert job.process.poll() is None, job.log()[-3_000:]
    problems = [problem for checker in checkers for problem in checker.problems]
    return bool(problems) or all(checker.window >= upto_ms for checker in checkers)
