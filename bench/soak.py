"""Half an hour of windows at ten times their speed: does anything grow?

A load test with windows of 200 ms under a steady feed, and the memory of every process.
What is kept for a time is kept for a tenth of it, so that log and window log are as
full as they get long before the last third. The first third is the start; a process
that grows from the second third to the last one has a leak. Ends with exit code 1 then,
or if a promise was broken: the ledger does not balance, a window is missing.
"""

import argparse
import sys
from collections.abc import Iterable, Sequence
from statistics import mean

from machine import end_on_signals, print_table
from rich.console import Console

from deploy.loadtest.choices import LoadChoices
from deploy.loadtest.load_run import carry_out
from deploy.loadtest.plan import plan_of
from deploy.loadtest.report.console import RunDisplay
from deploy.loadtest.report.verdict import broken_words, in_short
from deploy.loadtest.results import ProcessUsage
from deploy.loadtest.system.deployment import local
from deploy.loadtest.system.machine import describe_machine
from throttle.settings import ThrottleSettings

DEFAULTS = ThrottleSettings.model_construct()
SPEED = 10
WINDOW_MS = DEFAULTS.window_ms // SPEED
SETTINGS = {
    "TICKTHROTTLE_TRADE_LOG_RETENTION_S": str(DEFAULTS.trade_log_retention_s // SPEED),
    "TICKTHROTTLE_WINDOW_LOG": str(DEFAULTS.window_log // SPEED),
    # What charts are drawn from is bounded in bytes: full in the first third.
    "TICKTHROTTLE_HISTORY_BYTES": str(2**20),
}
MOST_GROWTH = 0.10
SMALL_MIB = 4.0
"""Less than this is no leak: so much an allocator leaves unused in hours."""


def main() -> None:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    minutes = "how long, really; in less than 3 the log and Java's heap still fill up"
    parser.add_argument("--minutes", type=float, default=3, help=minutes)
    parser.add_argument("--rate", type=float, default=900, help="trades per second")
    parser.add_argument("--issues", type=int, default=2_879)
    chosen = parser.parse_args()
    end_on_signals()
    plan = plan_of(
        LoadChoices(
            rate=chosen.rate,
            issues=chosen.issues,
            clients=10,
            mix="watch:1",
            seconds=60 * chosen.minutes,
            warm_up_s=10,
            processes=1,
            # How late a window is, is not the question.
            rules=("faults>0",),
        )
    )
    with (
        local(window_ms=WINDOW_MS, settings=SETTINGS) as deployment,
        RunDisplay(Console(stderr=True)) as display,
    ):
        outcome = carry_out(plan, plan.feed.isins(), deployment, display).outcome
    print(
        f"\n{chosen.minutes:g} minutes at {SPEED} times the speed, {chosen.rate:,.0f} "
        f"trades/s, windows of {WINDOW_MS} ms; {in_short(outcome)}"
    )
    problems = [*outcome.faults, *outcome.books.problems, *broken_words(outcome.checks)]
    problems += report_memory(p for p in outcome.processes if not p.is_ours)
    lags_ms = [lag_ms for lag_ms in outcome.windows.publish_ms if lag_ms is not None]
    print_table(
        f"{len(lags_ms)} windows, from a window's end until it is published",
        [("lag", lags_ms)],
    )
    print(f"\nMachine: {describe_machine()}")
    for problem in problems:
        print(f"Not as it must be: {problem}")
    sys.exit(1 if problems else 0)


def report_memory(processes: Iterable[ProcessUsage]) -> list[str]:
    """Print the means of the thirds; say which process grew too much."""
    print(
        "\n| memory, MiB | first third | second third | last third | growth, second "
        "to last |\n| --- | ---: | ---: | ---: | ---: |"
    )
    problems = []
    for process in processes:
        sizes: Sequence[float] = [s for s in process.memory_mib if s is not None]
        third = len(sizes) // 3
        first, second, last = (
            mean(part) for part in (sizes[:third], sizes[third:-third], sizes[-third:])
        )
        growth = last / second - 1
        print(
            f"| {process.name} | {first:.1f} | {second:.1f} | {last:.1f} "
            f"| {growth:+.1%} |"
        )
        if growth > MOST_GROWTH and last - second > SMALL_MIB:
            problems.append(f"{process.name} has grown by {growth:.1%}")
    return problems


if __name__ == "__main__":
    main()
