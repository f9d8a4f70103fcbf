"""The guardian, with real processes and real signals."""

import subprocess
import sys

from cli.local.guardian import end_groups, is_alive
from tests.conftest import PATIENCE

STUBBORN = (
    "import signal, time;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "print('up', flush=True);"
    "time.sleep(60)"
)


def start(code: str) -> subprocess.Popen[str]:
    """Start a process in a group of its own; wait until it says something."""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    return process


def test_a_group_that_ignores_sigterm_is_killed() -> None:
    with start(STUBBORN) as process:
        end_groups({process.pid}, grace_s=0.2)
        assert process.wait(timeout=5 * PATIENCE) == -9
    assert not is_alive(process.pid)


def test_a_group_that_is_gone_is_no_error() -> None:
    """The parent may have ended its parts itself."""
    with start("print('up', flush=True)") as process:
        process.wait(timeout=5 * PATIENCE)
    end_groups({process.pid}, grace_s=0.2)


def test_a_broken_pipe_ends_what_was_named_on_it() -> None:
    """However the parent ends, its pipe breaks, and its groups are ended."""
    with start(STUBBORN) as process:
        guardian = subprocess.Popen(
            [sys.executable, "-m", "cli.local.guardian"],
            stdin=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert guardian.stdin is not None
        guardian.stdin.write(f"{process.pid}\n")
        guardian.stdin.flush()
        assert is_alive(process.pid)
        guardian.stdin.close()
        assert process.wait(timeout=10 * PATIENCE) == -9
        assert guardian.wait(timeout=10 * PATIENCE) == 0
