"""Kill feed, job, gateway and archive in turns while statuses are told beside trades.

A client of all instruments stays, across all its connections. After each crash it has
to be told what is fed then; at any time each status once, in order, none missed, and
before the first trade that came after it. In the end the stream in Redis, the client,
REST and the archive have the same statuses. Ends with exit code 1 at the first fault.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from loadtest.system.machine import describe_machine
from tests.e2e.rig import create_rig
from tests.e2e.status_crash import KILLED, StatusCrasher

WINDOW_MS = 500


def main() -> None:
    """Crash and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many crashes")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same moments")
    arguments = parser.parse_args()
    chance, began = Random(arguments.seed), time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="status-crash-") as folder,
        create_rig(Path(folder) / "rig", WINDOW_MS, is_watched=False) as rig,
        StatusCrasher(rig) as crasher,
    ):
        told = crasher.watcher
        for number in range(arguments.runs):
            name, killed_s = KILLED[number % len(KILLED)], time.monotonic()
            try:
                crasher.crash_once(name, chance)
            except AssertionError as error:
                print(f"{error}\n\ncrash {number + 1}, {name}: not as it must be.")
                sys.exit(1)
            print(
                f"{number + 1:4}  {name:<9} again after "
                f"{time.monotonic() - killed_s:4.1f} s, {told.statuses} statuses and "
                f"{told.items} items as they must be",
                flush=True,
            )
        statuses = crasher.finish()
    print(
        f"\n{arguments.runs} crashes, {(time.monotonic() - began) / 60:.0f} minutes: "
        f"{statuses} statuses, each told once and stored once, none after a trade that "
        f"came behind it ({told.items} items).\n\nMachine: {describe_machine()}"
    )


if __name__ == "__main__":
    main()
