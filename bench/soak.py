"""Half an hour of windows at ten times their speed: does anything grow?

Runs the job on a server of its own with windows of 200 ms under a steady feed, and
measures the memory of every process. What is kept for a time is kept for a tenth of
it, so that log and window log are as full as they get long before the last third. The
first third is the start; a process that grows from the second third to the last one
has a leak. Ends with exit code 1 then, or if the ledger does not balance, or if a
window is missing.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from logs import Log, running_log
from machine import (
    Memory,
    MemoryWatch,
    PublishedWindows,
    end_on_signals,
    print_table,
    running_job,
    running_server,
    wait_for_books,
)

from bench.load.machine import describe_machine
from throttle.settings import ThrottleSettings

DEFAULTS = ThrottleSettings.model_construct()
SPEED = 10
WINDOW_MS = DEFAULTS.window_ms // SPEED
KINDS = ("driver", "JVM", "workers", "server")
EVERY_S = 5
MOST_GROWTH = 0.10


def main() -> None:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    minutes = "how long, really; in less than 3 the log and Java's heap still fill up"
    parser.add_argument("--minutes", type=float, default=3, help=minutes)
    parser.add_argument("--rate", type=int, default=900, help="trades per second")
    parser.add_argument("--issues", type=int, default=2_879)
    chosen = parser.parse_args()
    end_on_signals()
    with (
        running_server() as server,
        running_log("redis", server, DEFAULTS.partitions) as trade_log,
        running_job(
            server,
            TICKTHROTTLE_WINDOW_MS=str(WINDOW_MS),
            TICKTHROTTLE_LOG_RETENTION_S=str(DEFAULTS.log_retention_s // SPEED),
            TICKTHROTTLE_WINDOW_LOG=str(DEFAULTS.window_log // SPEED),
        ) as job,
    ):
        published = PublishedWindows(server)
        with MemoryWatch(job.process.pid, server.pid, EVERY_S) as memory:
            last_ms, sent = run_feed(trade_log, published, chosen)
        ledger = wait_for_books(server, job, last_ms, within_s=60)
        published.follow()
    print(
        f"\n{chosen.minutes:g} minutes at {SPEED} times the speed, {chosen.rate:,} "
        f"trades/s, {sent:,} trades, windows of {WINDOW_MS} ms"
    )
    problems = [f"the books do not balance: {words}" for words in ledger.problems()]
    if ledger.total.read != sent:
        problems.append(f"{sent} trades in the log, {ledger.total.read} were read")
    problems += find_gaps(published.lags_ms)
    problems += report_memory(memory.samples)
    print_table(
        f"{len(published.lags_ms)} windows, from a window's end until it is published",
        [("lag", list(published.lags_ms.values()))],
    )
    print(f"\nMachine: {describe_machine()}")
    for problem in problems:
        print(f"Not as it must be: {problem}")
    sys.exit(1 if problems else 0)


def run_feed(
    trade_log: Log, published: PublishedWindows, chosen: argparse.Namespace
) -> tuple[int, int]:
    """Feed to the end, following the windows; return the feed's end and its trades."""
    seconds = chosen.minutes * 60
    with trade_log.feed(chosen.rate, seconds, chosen.issues) as feeder:
        feeder.next_report()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            # Often enough: the window log holds 9 s.
            time.sleep(min(1, max(0, end - time.monotonic())))
            published.follow()
        fed = feeder.next_report()
    return int(fed["ended_ms"]), int(fed["sent"])


def find_gaps(lags_ms: dict[int, float]) -> list[str]:
    """Say how many windows between the first and the last were not seen."""
    windows = sorted(lags_ms)
    missing = (windows[-1] - windows[0]) // WINDOW_MS + 1 - len(windows)
    return [f"{missing} windows are missing"] if missing else []


def report_memory(samples: Sequence[Memory]) -> list[str]:
    """Print the means of the thirds; say which process grew too much."""
    third = len(samples) // 3
    thirds = [samples[:third], samples[third : 2 * third], samples[2 * third :]]
    print(
        "\n| memory, MiB | first third | second third | last third | growth, second "
        "to last |\n| --- | ---: | ---: | ---: | ---: |"
    )
    problems = []
    for kind in KINDS:
        for place, name in enumerate(("RSS", "PSS")):
            first, second, last = (mean_of(part, kind, place) for part in thirds)
            growth = last / second - 1
            print(
                f"| {kind}, {name} | {first:.1f} | {second:.1f} | {last:.1f} "
                f"| {100 * growth:+.1f} % |"
            )
            if growth > MOST_GROWTH:
                problems.append(f"{kind} has grown by {100 * growth:.1f} % ({name})")
    return problems


def mean_of(samples: Sequence[Memory], kind: str, place: int) -> float:
    """Return the mean of one kind of process: RSS at place 0, PSS at place 1."""
    sizes = [sample[kind][place] for sample in samples if kind in sample]
    return sum(sizes) / len(sizes)


if __name__ == "__main__":
    main()
