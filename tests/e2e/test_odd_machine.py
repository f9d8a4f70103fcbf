"""``tickthrottle run`` on a machine that is odd in every way at a time."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import PATIENCE, leave_out
from tests.dead_proxy import DEAD_PROXY
from tests.e2e.processes import Running, running_command
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

PROGRAM = [sys.executable, "-P", "-m", "tickthrottle"]

# A name without an address, temporary files among which nothing may run, and a user
# whom the system does not know.
HARDENED = """
mount -t tmpfs -o noexec,mode=1777 tmpfs "$TMPDIR" &&
echo no-such-host.invalid > /proc/sys/kernel/hostname &&
exec unshare --user --map-user=54321 --map-group=54321 "$@"
"""
ENTER = ["unshare", "--mount", "--uts", "sh", "-c", HARDENED, "sh"]


def environment(folder: Path) -> dict[str, str]:
    """Return what a user's shell may have set for others than a run."""
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    return {
        **DEAD_PROXY,
        "TMPDIR": str(temporary),
        "HOME": str(folder),
        "_JAVA_OPTIONS": "-Xmx64m -XX:+UseG1GC",
        "JAVA_TOOL_OPTIONS": "-Duser.country=KR",
        "REDIS_URL": "redis://no-such-host.invalid:6379",
        "TICKTHROTTLE_NAMESPACE": "production",
        "TICKTHROTTLE_TRADE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": "no-such-host.invalid:9092",
        "TICKTHROTTLE_DECODER": "no_such_module:decode",
        "TICKTHROTTLE_STATE_DIR": str(folder / "state"),
    }


@pytest.fixture
def hardened(tmp_path: Path) -> dict[str, str]:
    """The environment of a hardened machine; left out where none can be had."""
    own = environment(tmp_path)
    can = subprocess.run(
        [*ENTER, "true"], env={**os.environ, **own}, capture_output=True, timeout=30
    )
    if can.returncode != 0:
        leave_out("namespaces of one's own, which take root")
    return own


@pytest.fixture
def port() -> int:
    """The port of the run."""
    return free_port()


@pytest.fixture
def run(tmp_path: Path, port: int, hardened: dict[str, str]) -> Iterator[Running]:
    """A run on that machine, live."""
    command = [*ENTER, *PROGRAM, "run", "--port", str(port), "--no-archive"]
    with running_command(tmp_path, "run", command, **hardened) as process:
        process.wait_for("Ctrl-C stops everything", within_s=150)
        yield process


def test_a_run_on_an_odd_machine_is_live_and_is_found(
    tmp_path: Path, port: int, hardened: dict[str, str], run: Running
) -> None:
    """It says what it ignores, and a command finds it."""
    said = " ".join(run.log().split())
    assert (
        "ignored TICKTHROTTLE_TRADE_LOG, TICKTHROTTLE_KAFKA_SERVERS, "
        "TICKTHROTTLE_DECODER, REDIS_URL, TICKTHROTTLE_NAMESPACE: a run has its own"
    ) in said
    log = (tmp_path / "state" / f"run-{port}" / "logs" / "throttle.log").read_text()
    assert "_JAVA_OPTIONS=-Xmx64m -XX:+UseG1GC" in log
    assert "java takes options from variables" in log
    assert "no program may run in TMPDIR" in log

    own = {k: v for k, v in hardened.items() if k != "REDIS_URL"}
    status = subprocess.run(
        [*ENTER, *PROGRAM, "status"],
        env={**os.environ, **own},
        capture_output=True,
        text=True,
        timeout=60 * PATIENCE,
    )
    # Whether all is well, a busy machine decides; that it is judged, is the point.
    assert status.returncode in (0, 1), status.stderr
    lines = [line.split()[0] for line in status.stdout.splitlines()[-6:]]
    assert lines == ["feed", "log", "job", "stream", "gateway", "clients"]
