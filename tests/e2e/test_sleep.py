"""A machine that sleeps: every process of a pipeline stops, and goes on much later."""

import signal
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.conftest import eventually
from tests.e2e.processes import name_of, running
from tests.ports import free_port
from tests.quick_java import QUICK_JAVA

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(300),
]

ASLEEP_S = 15
"""Seven windows, and longer than anything of ours holds without renewing it.

Spark gives an executor up after two minutes by default; that it does not here is an
option, which `tests/throttle/spark/test_session.py` holds.
"""


def is_ready(port: int) -> bool:
    """Tell whether windows come."""
    url = f"http://127.0.0.1:{port}/health/ready"
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def throttle_log(state: Path, port: int) -> str:
    """Return what the job has logged."""
    return (state / f"run-{port}" / "logs" / "throttle.log").read_text("utf-8")


def tell(family: list[psutil.Process], number: signal.Signals) -> None:
    """Signal each that is still there: Java runs commands that end at once."""
    for one in family:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)


def test_a_pipeline_that_was_asleep_goes_on(tmp_path: Path) -> None:
    """SIGSTOP of all its processes; then windows again, and no word of Java."""
    port, state = free_port(), tmp_path / "state"
    environment = {
        **QUICK_JAVA,
        "TICKTHROTTLE_STATE_DIR": str(state),
        # So that Spark looks for the executor as soon as it is awake.
        "TICKTHROTTLE_SPARK_CONF": '{"spark.network.timeoutInterval": "1s"}',
    }
    arguments = ["run", "--port", str(port), "--rate", "100"]
    with running(tmp_path, *arguments, **environment) as process:
        process.wait_for("live: ", within_s=200)
        eventually(lambda: is_ready(port), 60)
        top = psutil.Process(process.process.pid)
        family = [top, *top.children(recursive=True)]
        [java] = [one.pid for one in family if name_of(one) == "java"]
        tell(family, signal.SIGSTOP)
        before = len(throttle_log(state, port))
        # A process may have been started between the look and the signal.
        family = [top, *top.children(recursive=True)]
        tell(family, signal.SIGSTOP)
        time.sleep(ASLEEP_S)
        tell(family[::-1], signal.SIGCONT)
        eventually(lambda: "caught up" in throttle_log(state, port)[before:], 60)
        eventually(lambda: is_ready(port), 60)
        assert psutil.pid_exists(java)
        assert "Exception" not in throttle_log(state, port)
