"""Runs an archive that kills itself: python -m tests.archive.crash_at STEP N SETTINGS.

At the N-th time that the step is done; without a step it runs until SIGTERM. A fourth
argument is the number of another signal to send than SIGKILL.
"""

import json
import os
import signal
import sys
import threading

from archive.archive_process import run_archive
from archive.settings import ArchiveSettings


def main() -> None:
    step, times, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
    number = int(sys.argv[4]) if len(sys.argv) > 4 else signal.SIGKILL
    left = times
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())

    def at_step(name: str) -> None:
        nonlocal left
        if name == step:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), number)

    run_archive(ArchiveSettings(**settings), stop, at_step, flush_s=0.1)


if __name__ == "__main__":
    main()
