"""Kill the job again and again, at named points and random moments; compare all.

Runs the job on a tape that goes on, some of whose trades are taken back, kills driver,
JVM and workers with SIGKILL, starts the job again, and compares every window published
so far, the days so far and the whole ledger with an oracle that reads the trade log.
Ends with exit code 1 at the first difference.
"""

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from bench.machine import print_table
from loadtest.system.machine import describe_machine
from tests.e2e import backlog_crash
from tests.e2e.backlog_crash import BacklogCrasher
from tests.e2e.crash import (
    POINTS,
    POINTS_OF_ANY_LOG,
    RUNNING,
    STARTING,
    Crash,
    Crasher,
)
from tests.e2e.kafka_rig import create_kafka_rig
from tests.e2e.rig import Rig, create_rig
from tests.kafka_broker.broker import Broker

# The server is emptied after so many crashes: comparing everything stays quick.
ROUND = 10
WINDOW_MS = 500


def main() -> None:
    """Crash and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200, help="how many crashes")
    parser.add_argument("--seed", type=int, default=1, help="same seed, same moments")
    parser.add_argument("--trade-log", choices=["redis", "kafka"], default="redis")
    parser.add_argument("--partitions", type=int, default=4, help="of a Kafka topic")
    keyed = "each instrument in a partition of its own, or in all of a Kafka topic"
    switch = argparse.BooleanOptionalAction
    parser.add_argument("--keyed", action=switch, default=True, help=keyed)
    cancels = "trades are taken back, windows with such ones by the driver"
    parser.add_argument("--cancels", action=switch, default=True, help=cancels)
    backlog = "while a backlog in Redis is worked off, instead of live"
    parser.add_argument("--backlog", action="store_true", help=backlog)
    arguments = parser.parse_args()
    chance = Random(arguments.seed)
    if arguments.backlog:
        crash_behind(arguments.runs, arguments.seed, chance)
        return
    points = POINTS if arguments.trade_log == "redis" else POINTS_OF_ANY_LOG
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="crash-") as folder,
        create(arguments, Path(folder)) as rig,
        Crasher(rig) as crasher,
    ):
        crashes = []
        for number in range(arguments.runs):
            point = choose_point(number, chance, points, starting=0.2)
            with repeatable(number, point, arguments.seed):
                if number and number % ROUND == 0:
                    crasher.renew()
                crash = crasher.crash_once(point, chance)
            crashes.append(crash)
            print(
                f"{number + 1:4}  {point:<28} back after {crash.down_s:4.1f} s, "
                f"{crash.checked.windows} windows and {crash.checked.trades} trades "
                "as they must be",
                flush=True,
            )
        report(crashes, crasher.starts, time.monotonic() - began)


def crash_behind(runs: int, seed: int, chance: Random) -> None:
    """Crash a job that has not caught up yet, and print."""
    points = Counter[str]()
    trades = 0
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="crash-") as folder,
        create_rig(Path(folder) / "rig", WINDOW_MS, is_watched=False) as rig,
    ):
        rig.is_taking_back = True
        crasher = BacklogCrasher(rig)
        for number in range(runs):
            point = choose_point(number, chance, backlog_crash.POINTS, starting=0.0)
            with repeatable(number, point, seed):
                checked = crasher.crash_once(point, chance)
            points[point] += 1
            trades += checked.trades
            print(
                f"{number + 1:4}  {point:<28} {checked.windows} windows and "
                f"{checked.trades} trades as they must be",
                flush=True,
            )
        crasher.finish()
    print_points(points)
    minutes = (time.monotonic() - began) / 60
    print(
        f"\n{runs} crashes of a job that was behind, {minutes:.0f} minutes; "
        f"{trades} trades compared after them, no difference."
        f"\n\nMachine: {describe_machine()}"
    )


@contextmanager
def repeatable(number: int, point: str, seed: int) -> Iterator[None]:
    """End with 1 where something differs, and say how to see it again."""
    try:
        yield
    except AssertionError as error:
        print(f"{error}\n\nrun {number + 1}, {point}: not as it must be.")
        print(f"Again with: --seed {seed} --runs {number + 1}")
        sys.exit(1)


def print_points(points: Mapping[str, int]) -> None:
    """Print where jobs were killed."""
    print("\n| killed at | times |\n| --- | ---: |")
    for point, times in points.items():
        print(f"| {point} | {times} |")


@contextmanager
def create(arguments: argparse.Namespace, folder: Path) -> Iterator[Rig]:
    """Yield what is around the job, with a broker of its own if there has to be one."""
    if arguments.trade_log == "redis":
        with create_rig(folder / "rig", WINDOW_MS, is_watched=False) as rig:
            rig.is_taking_back = arguments.cancels
            yield rig
        return
    with (
        Broker(folder / "kafka") as broker,
        create_kafka_rig(
            folder / "rig",
            WINDOW_MS,
            broker.servers,
            arguments.partitions,
            is_keyed=arguments.keyed,
        ) as rig,
    ):
        rig.is_taking_back = arguments.cancels
        yield rig


def choose_point(
    number: int, chance: Random, points: Sequence[str], starting: float
) -> str:
    """Return the point of a run: half of them named ones in turn, half random.

    Of the random ones a share is of the job's start.
    """
    if number % 2 == 0:
        return points[number // 2 % len(points)]
    return STARTING if chance.random() < starting else RUNNING


def report(crashes: list[Crash], starts: int, seconds: float) -> None:
    """Print the totals."""
    rounds = [crashes[at : at + ROUND] for at in range(0, len(crashes), ROUND)]
    windows = sum(one[-1].checked.windows for one in rounds)
    trades = sum(one[-1].checked.trades for one in rounds)
    print_points(Counter(crash.point for crash in crashes))
    print(
        f"\n{len(crashes)} crashes, {starts} starts, {seconds / 60:.0f} minutes. "
        f"Published {windows} windows, {trades} trades in the ledger; each window "
        "and each book compared after every crash, no difference."
    )
    print_table(
        "From the kill",
        [
            ("to the next window published", [1000 * c.down_s for c in crashes]),
            ("until live again", [1000 * c.caught_up_s for c in crashes]),
        ],
    )
    print(f"\nMachine: {describe_machine()}")


if __name__ == "__main__":
    main()
