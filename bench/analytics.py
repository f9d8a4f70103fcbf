"""What bars and movers cost: beside the throttle, at a high rate, and over an hour.

`beside` measures the throttle without and with the analytics job, in turns, and how
soon a trade is in its bar. `rate` feeds many trades and says whether the queries keep
up. `--only moves` has it and `hour` look at other products than bars and movers.
`hour` runs windows ten times as short, an hour of them in six minutes, and shows what
the state has become in each third.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil
from machine import (
    Program,
    Server,
    end_on_signals,
    percentile,
    read_batches,
    running_job,
    running_server,
)

from deploy.loadtest.system.machine import describe_machine
from deploy.local.process_tree import job_family, members
from throttle.contract.bars import BarsUpdate
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import TallyBook

KEYS = AnalyticsKeys("tt")
SETTLE_S = 20.0


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["beside", "rate", "hour"])
    parser.add_argument("--rounds", type=int, default=3, help="of beside, each way")
    parser.add_argument("--seconds", type=float, help="how long, each time")
    parser.add_argument("--rate", type=int, help="trades per second")
    parser.add_argument("--store", choices=["rocksdb", "memory"], default="rocksdb")
    parser.add_argument("--only", default="bars,movers", help="products")
    arguments = parser.parse_args()
    end_on_signals()
    settings = {
        "TICKTHROTTLE_STATE_STORE": arguments.store,
        "TICKTHROTTLE_ANALYTICS": arguments.only,
    }
    if arguments.what == "beside":
        beside(arguments.rounds, arguments.rate or 900, arguments.seconds or 120)
    elif arguments.what == "rate":
        keep_up(arguments.rate or 20_000, arguments.seconds or 120, settings)
    else:
        hour(arguments.rate or 900, arguments.seconds or 360, settings)
    print(f"\nMachine: {describe_machine()}")


@contextmanager
def running_analytics(server: Server, **settings: str) -> Iterator[Program]:
    """Run the analytics job; yield it when its queries run."""
    folder = server.folder / "analytics"
    folder.mkdir()
    environment = {
        **os.environ,
        "REDIS_URL": server.url,
        "TICKTHROTTLE_STATE_DIR": str(folder),
        "TICKTHROTTLE_LOG_FORMAT": "json",
        **settings,
    }
    command = [sys.executable, "-m", "tickthrottle", "analytics"]
    program = Program("analytics", command, folder, environment)
    try:
        program.wait_for("analytics ready", within_s=300)
        yield program
    finally:
        program.end()


@contextmanager
def feeding(server: Server, rate: int) -> Iterator[None]:
    """Run a simulated market within the block."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "tickthrottle", "simulate"),
            *("--rate", str(rate), "--redis-url", server.url),
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


class Freshness:
    """Listens to the channel of bars: how old the oldest trade of a batch is then."""

    def __init__(self, server: Server) -> None:
        self.ages_ms: list[float] = []
        self._is_over = threading.Event()
        self._server = server
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> "Freshness":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _listen(self) -> None:
        channel = self._server.client.pubsub(ignore_subscribe_messages=True)
        channel.subscribe(KEYS.updates("bars"))
        before_ms = None
        while not self._is_over.is_set():
            message = channel.get_message(timeout=0.2)
            if message is None:
                continue
            now_ms = time.time() * 1000
            update = BarsUpdate.decode(message["data"])
            # A bar closes a second after its end: the clock of bars is that far back.
            cut_ms = update.clock_ms + 1_000
            if before_ms is not None:
                self.ages_ms.append(now_ms - before_ms)
            before_ms = cut_ms


def memory_of(server: Server, *groups: int) -> float:
    """Return what the server and some jobs use, MiB (PSS)."""
    used = 0
    parts = [*members("server", server.pid)]
    for group in groups:
        parts += job_family("", group)
    for _, process in parts:
        with suppress(psutil.NoSuchProcess):
            used += process.memory_full_info().pss
    return used / 2**20


def beside(rounds: int, rate: int, seconds: float) -> None:
    """Measure the throttle alone and with the analytics job, in turns."""
    found: dict[str, list[str]] = defaultdict(list)
    for _ in range(rounds):
        for has_analytics in (False, True):
            name = "with bars and movers" if has_analytics else "alone"
            found[name].append(measure_beside(has_analytics, rate, seconds))
    print(
        f"\n{rate} trades/s, {seconds:g} s each\n\n| | publish lag p50, p90, p99, ms; "
        "memory, MiB; a trade in its bar p50, p99, ms |\n| --- | --- |"
    )
    for name, rows in found.items():
        for row in rows:
            print(f"| {name} | {row} |")


def measure_beside(has_analytics: bool, rate: int, seconds: float) -> str:
    """Run once; return the figures."""
    with (
        running_server() as server,
        feeding(server, rate),
        running_job(server) as job,
        ExitStack() as stack,
    ):
        groups = [job.group]
        if has_analytics:
            groups.append(stack.enter_context(running_analytics(server)).group)
        time.sleep(SETTLE_S)
        begin = len(job.events)
        with Freshness(server) as freshness:
            time.sleep(seconds)
        memory = memory_of(server, *groups)
        lags = [b["lag_ms"] for b in read_batches(job.events[begin:])]
    shares = ", ".join(f"{percentile(lags, s):.0f}" for s in (0.5, 0.9, 0.99))
    ages = freshness.ages_ms
    fresh = ", ".join(f"{percentile(ages, s):,.0f}" for s in (0.5, 0.99) if ages)
    return f"{shares}; {memory:,.0f}; {fresh or '-'}"


def products_of(settings: dict[str, str]) -> list[str]:
    """Return what the job makes."""
    return settings["TICKTHROTTLE_ANALYTICS"].split(",")


def keep_up(rate: int, seconds: float, settings: dict[str, str]) -> None:
    """Feed many trades and see how far behind the log the products are."""
    updates: dict[str, list[float]] = defaultdict(list)
    states: dict[str, dict[bytes, bytes]] = {}
    with (
        running_server() as server,
        running_analytics(server, **settings) as job,
        feeding(server, rate),
    ):
        time.sleep(SETTLE_S)
        behind: dict[str, list[float]] = defaultdict(list)
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s:
            job.check_runs()
            for product in products_of(settings):
                clock = server.client.hget(KEYS.progress(product), "clock")
                if state := server.client.hgetall(KEYS.state(product)):
                    states[product] = state
                    updates[product].append(float(state[b"update_ms"]))
                if clock is not None:
                    behind[product].append(time.time() - int(clock) / 1000)
            time.sleep(0.5)
        memory = memory_of(server, job.group)
        books = {
            product: TallyBook.decode(
                product, server.client.hgetall(KEYS.ledger(product))
            )
            for product in behind
        }
    store = settings["TICKTHROTTLE_STATE_STORE"]
    print(f"\n{rate:,} trades/s for {seconds:g} s, {store}; {memory:,.0f} MiB\n")
    for product, seconds_behind in behind.items():
        half = len(seconds_behind) // 2
        first, last = (
            statistics.fmean(part)
            for part in (seconds_behind[:half], seconds_behind[half:])
        )
        book = books[product]
        read = sum(t.read for t in book.partitions.values()) if book else 0
        print(f"- {product}: {first:.1f} s behind, then {last:.1f} s; {read:,} read")
        if state := states.get(product):
            size = float(state[b"bytes"]) / 2**20
            print(
                f"  - state: {int(state[b'rows']):,} rows, {size:.1f} MiB, updates of "
                f"{percentile(updates[product], 0.5):.0f} ms (p50)"
            )
        for problem in book.problems() if book else ["no books"]:
            print(f"  - {problem}")


def hour(rate: int, seconds: float, chosen: dict[str, str]) -> None:
    """Run windows ten times as short and print the state's size by thirds."""
    settings = {
        **chosen,
        "TICKTHROTTLE_MOVE_SPAN_MS": "1000",
        "TICKTHROTTLE_BARS_MS": "6000",
        "TICKTHROTTLE_LATENESS_S": str(round(seconds / 6)),
        "TICKTHROTTLE_MOVERS_SPAN_S": "30",
        "TICKTHROTTLE_MOVERS_EVERY_S": "5",
    }
    rows: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    with (
        running_server() as server,
        running_analytics(server, **settings) as job,
        feeding(server, rate),
    ):
        began_s = time.monotonic()
        while (elapsed_s := time.monotonic() - began_s) < seconds:
            job.check_runs()
            for product in products_of(settings):
                state = server.client.hgetall(KEYS.state(product))
                if state:
                    figures = (
                        float(state[n]) for n in (b"rows", b"bytes", b"commit_ms")
                    )
                    memory = memory_of(server, job.group)
                    rows[product].append((elapsed_s, *figures, memory))
            time.sleep(1)
    print(
        f"\n{rate} trades/s, {settings['TICKTHROTTLE_STATE_STORE']}, windows ten times "
        "as short\n\n"
        "| | third | rows | state, MiB | commit p50, ms | p99, ms | all, MiB (PSS) |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for product, figures in rows.items():
        for third in range(3):
            part = [f for f in figures if int(f[0] * 3 / seconds) == third]
            if not part:
                continue
            most = [max(f[n] for f in part) for n in (1, 2, 4)]
            commits = [f[3] for f in part]
            print(
                f"| {product} | {third + 1} | {most[0]:,.0f} | {most[1] / 2**20:.1f} | "
                f"{percentile(commits, 0.5):.0f} | {percentile(commits, 0.99):.0f} | "
                f"{most[2]:,.0f} |"
            )


if __name__ == "__main__":
    main()
