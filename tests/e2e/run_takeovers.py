"""How long the stream stands still when the active job dies and a standby goes on.

Each run warms a fresh standby, kills the active job with SIGKILL at a random moment and
measures until the standby's first publish; the standby is the active job of the next
run. All on one machine, under a feed. Afterwards every window is compared with an
oracle that reads the trade log.
"""

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from random import Random

from bench.machine import percentile
from loadtest.system.machine import describe_machine
from tests.e2e.processes import Running
from tests.e2e.rig import create_rig
from tests.e2e.takeover import Pair, Takeover


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many takeovers")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same moments")
    parser.add_argument("--rate", type=float, default=700, help="trades per second")
    parser.add_argument("--window-ms", type=int, default=2_000)
    arguments = parser.parse_args()
    chance = Random(arguments.seed)
    takeovers: list[Takeover] = []
    with (
        tempfile.TemporaryDirectory(prefix="takeover-") as folder,
        create_rig(Path(folder) / "rig", arguments.window_ms, is_watched=False) as rig,
    ):
        # Measured is the Java that runs in production, not the one that starts quickly.
        del rig.environment["JDK_JAVA_OPTIONS"]
        with rig.feed(arguments.rate), Pair(rig) as pair:
            for number in range(arguments.runs):
                standby = pair.add_standby()
                rig.wait_until_live(pair.active)
                time.sleep(chance.uniform(0, 2 * arguments.window_ms / 1_000))
                takeover = pair.take_over(standby, Running.kill_now)
                takeovers.append(takeover)
                print(
                    f"{number + 1:3}  next publish after {takeover.to_publish_s:.2f} s,"
                    f" longest gap {takeover.longest_gap_s:.2f} s",
                    flush=True,
                )
                rig.wait_until_live(pair.active)
            checked = rig.check()
    print(
        f"\n{len(takeovers)} takeovers, windows of {arguments.window_ms} ms, "
        f"{arguments.rate:g} trades/s; {checked.windows} windows and "
        f"{checked.trades} trades compared, no difference.\n\n"
        "| seconds | min | median | p90 | longest |\n"
        "| --- | ---: | ---: | ---: | ---: |"
    )
    print_row("from the kill to the next publish", [t.to_publish_s for t in takeovers])
    print_row("longest gap between two publishes", [t.longest_gap_s for t in takeovers])
    print(f"\nMachine: {describe_machine()}")


def print_row(name: str, seconds: Sequence[float]) -> None:
    """Print one row of the table."""
    cells = [percentile(seconds, share) for share in (0, 0.5, 0.9, 1)]
    print(f"| {name} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")


if __name__ == "__main__":
    main()
