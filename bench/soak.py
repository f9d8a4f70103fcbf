"""Everything runs for a long time with clients of every kind: does anything grow?

A load test of all parts, archive and analytics too, under a steady feed, and the memory
of every process. Whatever is kept for a time is kept so shortly that it is full when
the first two fifths are over: what still grows then is a leak. Ends with exit code 1 if
a process does, or if a promise was broken: the ledger does not balance, a window is
missing. Windows may be shorter than by default (``--speed``).
"""

import argparse
import sys
from statistics import linear_regression

from machine import end_on_signals, print_table
from rich.console import Console

from deploy.commands.load_choices import EVERY_KIND, LoadChoices
from loadtest.load_run import carry_out
from loadtest.plan import plan_of
from loadtest.report.console import RunDisplay
from loadtest.report.verdict import broken_words, in_short
from loadtest.results import Outcome
from loadtest.system.deployment import local
from loadtest.system.machine import describe_machine
from throttle.settings import AnalyticsSettings

DEFAULTS = AnalyticsSettings.model_construct()
BOUNDS = {
    "TRADE_LOG_RETENTION_S": 30,
    "WINDOW_LOG": 45,
    # What charts are drawn from.
    "HISTORY_BYTES": 2**20,
    "BARS_KEPT": 5,
    "LATENESS_S": 60,
    "MOVERS_SPAN_S": 60,
}
"""All that fills up in memory, far below what it is by default."""

FILLED = 0.4
"""After this share of the time all bounds are full."""

MOST_MIB_A_MINUTE = 0.5
SMALL_MIB = 4.0
"""Less than this in all is no leak: so much an allocator leaves unused in hours."""


def main() -> None:
    """Run, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    minutes = "how long, really; in less than 3 Java's heap still fills up"
    parser.add_argument("--minutes", type=float, default=3, help=minutes)
    parser.add_argument("--rate", type=float, default=900, help="trades per second")
    parser.add_argument("--issues", type=int, default=2_879)
    parser.add_argument("--clients", type=int, default=100, help="of every kind")
    speed = "so many times shorter than by default are windows and bars"
    parser.add_argument("--speed", type=int, default=10, choices=(1, 2, 10), help=speed)
    chosen = parser.parse_args()
    end_on_signals()
    plan = plan_of(
        LoadChoices(
            rate=chosen.rate,
            issues=chosen.issues,
            clients=chosen.clients,
            mix=EVERY_KIND,
            seconds=60 * chosen.minutes,
            warm_up_s=10,
            processes=1,
            # How late a window is, is not the question.
            rules=("faults>0",),
        )
    )
    window_ms = DEFAULTS.window_ms // chosen.speed
    bounds = {**BOUNDS, "BARS_MS": DEFAULTS.bars_ms // chosen.speed}
    settings = {f"TICKTHROTTLE_{name}": str(value) for name, value in bounds.items()}
    with (
        local(
            window_ms=window_ms,
            settings=settings,
            archive=True,
            analytics="bars,movers",
        ) as deployment,
        RunDisplay(Console(stderr=True)) as display,
    ):
        outcome = carry_out(plan, plan.feed.isins(), deployment, display).outcome
    print(
        f"\n{chosen.minutes:g} minutes, {chosen.clients} clients of every kind, "
        f"{chosen.rate:,.0f} trades/s, windows of {window_ms} ms; {in_short(outcome)}"
    )
    problems = [*outcome.faults, *outcome.books.problems, *broken_words(outcome.checks)]
    problems += report_memory(outcome)
    lags_ms = [lag_ms for lag_ms in outcome.windows.publish_ms if lag_ms is not None]
    print_table(
        f"{len(lags_ms)} windows, from a window's end until it is published",
        [("lag", lags_ms)],
    )
    print(f"\nMachine: {describe_machine()}")
    for problem in problems:
        print(f"Not as it must be: {problem}")
    sys.exit(1 if problems else 0)


def report_memory(outcome: Outcome) -> list[str]:
    """Print how memory went; say which process grows once all bounds are full."""
    print(
        "\n| memory, MiB | at first | bounds full | at the end | then, MiB a minute |"
        "\n| --- | ---: | ---: | ---: | ---: |"
    )
    problems = []
    at_ms = outcome.seconds.at_ms
    for process in outcome.processes:
        pairs = zip(at_ms, process.memory_mib, strict=True)
        sizes = [(ms / 60_000, mib) for ms, mib in pairs if mib is not None]
        if process.is_ours or len(sizes) < 2:
            continue
        full = sizes[int(len(sizes) * FILLED) :]
        slope = linear_regression(*zip(*full, strict=True)).slope
        print(
            f"| {process.name} | {sizes[0][1]:.1f} | {full[0][1]:.1f} "
            f"| {full[-1][1]:.1f} | {slope:+.2f} |"
        )
        growth_mib = slope * (full[-1][0] - full[0][0])
        if slope > MOST_MIB_A_MINUTE and growth_mib > SMALL_MIB:
            problems.append(f"{process.name} grows by {slope:.1f} MiB a minute")
    return problems


if __name__ == "__main__":
    main()
