"""Ends the parts when their parent died without ending them.

A process of its own, started by the parent with a pipe to its standard input. Each
line names a process group that has to go with the parent. When the pipe ends, the
parent has ended, by whatever signal: the groups that are left get SIGTERM, then
SIGKILL. A parent that ended its parts itself leaves nothing to do.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TextIO

GRACE_S = 2.0


class Guardian:
    """The guardian as its parent sees it: told of groups, and sent home at the end."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cli.local.guardian"],
            stdin=subprocess.PIPE,
            start_new_session=True,
            text=True,
        )

    def watch(self, group: int) -> None:
        """Have a process group end with this process, however that one ends."""
        if self._process.stdin:
            self._process.stdin.write(f"{group}\n")
            self._process.stdin.flush()

    def close(self) -> None:
        """End what is left of the groups, and the guardian."""
        if self._process.stdin:
            self._process.stdin.close()
        self._process.wait(timeout=5)


def run_guardian(lines: TextIO) -> None:
    """Read process groups until the pipe ends, then end the groups."""
    groups = {int(line) for line in lines if line.strip()}
    end_groups(groups, GRACE_S)


def end_groups(groups: set[int], grace_s: float) -> None:
    """Send SIGTERM to each group, SIGKILL to those still there after ``grace_s``."""
    _signal(groups, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while any(is_alive(group) for group in groups) and time.monotonic() < deadline:
        time.sleep(0.05)
    _signal(groups, signal.SIGKILL)


def is_alive(group: int) -> bool:
    """Tell whether a process of the group exists."""
    try:
        os.killpg(group, 0)
    except OSError:
        return False
    return True


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(OSError):
            os.killpg(group, number)


if __name__ == "__main__":
    # Not for us: the parent decides what a terminal's Ctrl-C means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    run_guardian(sys.stdin)
