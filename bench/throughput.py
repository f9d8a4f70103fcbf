"""How fast a backlog is worked off, and the highest live rate that stays on time.

Runs the job itself against a server of its own, with default settings. The drain fills
an empty log with trades recorded in the past and measures until the job has published
them all, with its time by stage. The live part raises the rate step by step until the
p99 of window's end to publish reaches one window. Feed, server and job share the
machine. Ends with exit code 1 if the ledger does not balance.
"""

import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from fill import Log, running_log
from machine import (
    JOB,
    NAMESPACE,
    Program,
    Row,
    Server,
    load_table,
    memory_of,
    options,
    percentile,
    print_machine,
    print_rows,
    read_batches,
    running_job,
    running_server,
)

from loadtest.judge import books
from loadtest.judge.following import Follower, following
from throttle.audit.published import PublishedHistory
from throttle.contract.ledger import Ledger
from throttle.settings import ThrottleSettings

DEFAULTS = ThrottleSettings.model_construct()
WINDOW_MS = DEFAULTS.window_ms
LONGEST_RECORDING_S = 600
"""A slowly recorded backlog is made smaller, so as not to span hours of windows."""

RATES = (10_000, 20_000, 50_000, 80_000, 120_000, 160_000, 200_000, 250_000, 300_000)
STAGES = {
    "latestOffset": "where it begins and ends",
    "queryPlanning": "planning",
    "walCommit": "offset log",
    "plan_ms": "planning of the aggregation",
    "read_ms": "cut, read, check",
    "collect_ms": "conflate, hand over",
    "assemble_ms": "assemble",
    "publish_ms": "publish",
    "commitOffsets": "commit",
}
REST = "Spark's own, between the stages"


def main() -> None:
    chosen = parse_arguments()
    problems: list[str] = []
    if chosen.drain:
        columns = {}
        for recorded in chosen.recorded:
            trades = min(chosen.backlog, recorded * LONGEST_RECORDING_S)
            column, ledger_problems = drain(trades, recorded, chosen)
            columns[f"{recorded:,}/s"] = column
            problems += ledger_problems
        title = f"A backlog of {chosen.instruments:,} instruments, worked off"
        names = next(iter(columns.values()))
        figures = (
            {of: column[name] for of, column in columns.items()} for name in names
        )
        rows = zip(names, figures, strict=True)
        print_rows(title, [{"recorded at": name} | row for name, row in rows])
    if chosen.live:
        problems += go_live(chosen)
    print_machine()
    for problem in problems:
        print(f"The books do not balance: {problem}")
    sys.exit(1 if problems else 0)


def parse_arguments() -> Namespace:
    chosen = options(
        __doc__,
        trade_log=("redis", "where trades are", ["redis", "kafka"]),
        partitions=(DEFAULTS.partitions, "of it"),
        instruments=(2_879, "of the market"),
        table=(True, "an instrument table names the instruments"),
        speedups=(True, "the compiled package, where it is installed"),
        drain=(True, "the backlog"),
        backlog=(5_000_000, "trades"),
        recorded=(
            [50_000, 900],
            "trades/s with which the backlog came in; one drain each, of at most "
            f"{LONGEST_RECORDING_S} s of it",
        ),
        live=(True, "the live rates"),
        rates=([*RATES], "trades/s"),
        seconds=(30, "of each live rate"),
        short=(False, "small, to see it work"),
    )
    if chosen.short:
        chosen.backlog, chosen.seconds = min(chosen.backlog, 200_000), 10
        chosen.rates = chosen.rates[:2]
    return chosen


def drain(trades: int, recorded: int, chosen: Namespace) -> tuple[Row, list[str]]:
    """Fill a log and run the job on it; return a column of figures, and problems."""
    with (
        running_server() as server,
        running_log(
            chosen.trade_log, server, chosen.partitions, is_past=True
        ) as trade_log,
    ):
        trades, last_ms = trade_log.fill(trades, recorded, chosen.instruments)
        filled = f"{trades:,} trades are in the log, recorded at {recorded:,}/s"
        print(filled, file=sys.stderr, flush=True)
        if chosen.table:
            load_table(server, chosen.instruments)
        speedups = {"TICKTHROTTLE_SPEEDUPS": str(chosen.speedups)}
        with running_job(server, **trade_log.settings, **speedups) as job:
            memory: Counter[str] = Counter()

            def note() -> None:
                nonlocal memory
                memory |= memory_of(server, job)

            ledger = wait_for_books(server, job, last_ms, 1_800, note)
            # A batch's own line comes before Spark's, that one a moment later.
            time.sleep(2 * WINDOW_MS / 1_000)
            batches = read_batches(list(job.events))
    # Up to the one that cut past the last trade.
    needed = sum(batch["window"] <= last_ms for batch in batches) + 1
    batches = batches[:needed]
    problems = ledger.problems()
    if ledger.total.read != trades:
        problems.append(f"{trades} trades in the log, {ledger.total.read} were read")
    # From the first batch's start until the last was published.
    ended_ms = batches[-1]["window"] + batches[-1]["lag_ms"]
    seconds = float(ended_ms - start_ms(batches[0])) / 1_000
    stages = time_by_stage(batches)
    parts = ("driver", "JVM", "worker", "job", "server")
    return {
        "trades": f"{trades:,}",
        "windows": f"{sum(batch['windows'] for batch in batches):,}",
        "batches": f"{len(batches)}",
        "s": f"{seconds:.1f}",
        "**trades/s**": f"{trades / seconds:,.0f}",
        **{
            f"{title}, of the time": f"{spent / sum(stages.values()):.1%}"
            for title, spent in stages.items()
        },
        **{f"peak {p}, MiB (PSS)": f"{memory[p] / 2**20:.0f}" for p in parts},
    }, problems


def start_ms(batch: dict[str, Any]) -> float:
    """Return when a batch of which Spark told was begun, in ms since 1970."""
    before = ("latestOffset", "walCommit", "queryPlanning")
    began_ms = batch["window"] + batch["began_ms"]
    return float(began_ms - sum(batch.get(name, 0) for name in before))


def time_by_stage(batches: Sequence[dict[str, Any]]) -> dict[str, float]:
    known = [batch for batch in batches if "triggerExecution" in batch]
    times = {
        title: sum(float(batch.get(name, 0)) for batch in known)
        for name, title in STAGES.items()
    }
    everything = sum(float(batch["triggerExecution"]) for batch in known)
    return {**times, REST: everything - sum(times.values())}


def go_live(chosen: Namespace) -> list[str]:
    """Raise the rate until a window comes too late; return what the books say."""
    print(
        f"\nLive, {chosen.seconds} s at each rate; ms from a window's end until it is "
        "published\n\n"
        "| trades/s | appended | windows | p50 | p99 | max | on time |\n"
        "| ---: | ---: | ---: | ---: | ---: | ---: | --- |"
    )
    with (
        running_server() as server,
        running_log(chosen.trade_log, server, chosen.partitions) as trade_log,
        ExitStack() as stack,
    ):
        if chosen.table:
            load_table(server, chosen.instruments)
        job = stack.enter_context(running_job(server, **trade_log.settings))
        # A job's first windows take longer.
        trade_log.feed(chosen.rates[0], chosen.seconds / 2, chosen.instruments)
        wait_until_live(server, job)
        with following(server.url, NAMESPACE, JOB, WINDOW_MS) as published:
            for rate in chosen.rates:
                on_time, ended_ms = run_step(trade_log, published, rate, chosen)
                ledger = wait_for_books(server, job, ended_ms, within_s=600)
                if not on_time:
                    break
                wait_until_live(server, job)
    return ledger.problems()


def run_step(
    trade_log: Log, published: Follower, rate: int, chosen: Namespace
) -> tuple[bool, int]:
    """Feed at one rate, print its row; return the verdict and when the feed ended."""
    fed = trade_log.feed(rate, chosen.seconds, chosen.instruments)
    # The windows that the feed filled, but for its first.
    first = (fed.started_ms // WINDOW_MS + 2) * WINDOW_MS
    windows = range(first + WINDOW_MS, fed.ended_ms + 1, WINDOW_MS)
    published.wait_for(windows[-1], within_s=5 * WINDOW_MS / 1_000)
    lags_ms = {held.end_ms: held.lag_ms for held in published.run.windows}
    now_ms = time.time() * 1_000
    # One that is still not there is at least so late.
    lags = [lags_ms.get(window, now_ms - window) for window in windows]
    p50, p99 = percentile(lags, 0.5), percentile(lags, 0.99)
    keeps_pace = fed.behind_ms < WINDOW_MS / 2
    on_time = p99 < WINDOW_MS
    verdict = "yes" if on_time else "no"
    if not keeps_pace:
        verdict += f", but the feed itself was {fed.behind_ms:.0f} ms behind"
    print(
        f"| {rate:,} | {fed.rate:,.0f} | {len(lags)} | {p50:.0f} | {p99:.0f} "
        f"| {max(lags):.0f} | {verdict} |",
        flush=True,
    )
    return on_time and keeps_pace, fed.ended_ms


def wait_until_live(server: Server, job: Program) -> None:
    wait_for_books(server, job, int(time.time() * 1_000), within_s=60)


def wait_for_books(
    server: Server,
    job: Program,
    after_ms: int,
    within_s: float,
    meanwhile: Callable[[], None] = lambda: None,
) -> Ledger:
    """Wait until the books reach past a time and were compared with the log there.

    ``meanwhile`` is called again and again. Raises SystemExit when it takes too long,
    or when the job ends before.
    """

    def pause(_: float) -> None:
        job.check_runs()
        meanwhile()
        time.sleep(0.3)

    past = PublishedHistory(server.client, NAMESPACE)
    ledger = books.wait_for_books(past, JOB, after_ms + 1, within_s, pause)
    if ledger is None or (ledger.checked_ms or 0) <= after_ms:
        raise SystemExit(f"the job did not get to {after_ms} within {within_s:g} s")
    return ledger


if __name__ == "__main__":
    main()
