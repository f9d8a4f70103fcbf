"""What bars and movers cost: beside the throttle, at a high rate, and over an hour.

`beside` measures the throttle without and with the analytics job, in turns, and how
soon a trade is in its bar; `--set` adds a third turn under other settings. `rate` feeds
many trades and says whether the queries keep up. `hour` runs windows ten times as
short, an hour of them in six minutes, and shows what the state has become in each
third; bars stay in it for a sixth of that, or for `--lateness`. `--only moves` has them
look at other products than bars and movers.
"""

import argparse
import os
import statistics
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from machine import (
    Program,
    Server,
    end_on_signals,
    memory_by_name,
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
_STATE = "org.apache.spark.sql.execution.streaming.state"
STORES = {
    "rocksdb": f"{_STATE}.RocksDBStateStoreProvider",
    "memory": f"{_STATE}.HDFSBackedStateStoreProvider",
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["beside", "rate", "hour"])
    parser.add_argument("--rounds", type=int, default=3, help="of beside, each way")
    parser.add_argument("--seconds", type=float, help="how long, each time")
    parser.add_argument("--rate", type=int, help="trades per second")
    parser.add_argument("--store", choices=["rocksdb", "memory"], default="rocksdb")
    parser.add_argument(
        "--lateness", type=int, help="of hour: seconds that bars stay in the state"
    )
    parser.add_argument("--only", default="bars,movers", help="products")
    parser.add_argument(
        "--set",
        nargs="*",
        default=[],
        metavar="NAME=VALUE",
        help="of beside: a third turn with these variables of the analytics job",
    )
    arguments = parser.parse_args()
    end_on_signals()
    settings = {
        "TICKTHROTTLE_SPARK_CONF": "{"
        f'"spark.sql.streaming.stateStore.providerClass": "{STORES[arguments.store]}"'
        "}",
        "TICKTHROTTLE_ANALYTICS": arguments.only,
    }
    if arguments.what == "beside":
        others = dict(text.split("=", 1) for text in arguments.set)
        beside(
            arguments.rounds,
            arguments.rate or 900,
            arguments.seconds or 120,
            arguments.only,
            others,
        )
    elif arguments.what == "rate":
        keep_up(arguments.rate or 20_000, arguments.seconds or 120, settings)
    else:
        seconds = arguments.seconds or 360
        lateness_s = arguments.lateness or round(seconds / 6)
        settings["TICKTHROTTLE_LATENESS_S"] = str(lateness_s)
        hour(arguments.rate or 900, seconds, settings)
    print(f"\nMachine: {describe_machine()}")


def store_of(settings: Mapping[str, str]) -> str:
    """Return the store that the analytics job is to use."""
    conf = settings["TICKTHROTTLE_SPARK_CONF"]
    return next(name for name, provider in STORES.items() if provider in conf)


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
    parts = [*members("server", server.pid)]
    for group in groups:
        parts += job_family("", group)
    return memory_by_name(parts).total() / 2**20


class Beside(NamedTuple):
    """What one run showed: the throttle's lags, ages of trades in bars, memory."""

    lags_ms: list[float]
    ages_ms: list[float]
    memory_mib: float

    def cells(self) -> str:
        """Return a row of the table."""
        lags, ages = self.lags_ms, self.ages_ms
        shares = ", ".join(f"{percentile(lags, s):.0f}" for s in (0.5, 0.9, 0.99))
        fresh = ", ".join(f"{percentile(ages, s):,.0f}" for s in (0.5, 0.99) if ages)
        return f"{len(lags)} | {shares} | {self.memory_mib:,.0f} | {fresh or '-'}"


def beside(
    rounds: int, rate: int, seconds: float, only: str, others: dict[str, str]
) -> None:
    """Measure the throttle alone and with the analytics job, in turns."""
    ways: dict[str, dict[str, str] | None] = {"alone": None, f"with {only}": {}}
    if others:
        ways[" ".join(f"{name}={value}" for name, value in others.items())] = others
    runs: dict[str, list[Beside]] = defaultdict(list)
    for turn in range(rounds):
        for name, settings in ways.items():
            if settings is not None:
                settings = {"TICKTHROTTLE_ANALYTICS": only, **settings}
            runs[name].append(measure_beside(settings, rate, seconds))
            print(f"{turn + 1}: {name}: {runs[name][-1].cells()}", flush=True)
    print(
        f"\n{rate} trades/s, {rounds} times {seconds:g} s each way\n\n"
        "| | windows | publish lag p50, p90, p99, ms | memory, MiB | "
        "a trade in its bar p50, p99, ms |\n| --- | ---: | --- | ---: | --- |"
    )
    for name, some in runs.items():
        pooled = Beside(
            [lag for run in some for lag in run.lags_ms],
            [age for run in some for age in run.ages_ms],
            statistics.median(run.memory_mib for run in some),
        )
        print(f"| {name} | {pooled.cells()} |")


def measure_beside(
    settings: dict[str, str] | None, rate: int, seconds: float
) -> Beside:
    """Run once, with the analytics job if it has settings; return the figures."""
    with (
        running_server() as server,
        feeding(server, rate),
        running_job(server) as job,
        ExitStack() as stack,
    ):
        groups = [job.group]
        if settings is not None:
            program = stack.enter_context(running_analytics(server, **settings))
            groups.append(program.group)
        time.sleep(SETTLE_S)
        begin = len(job.events)
        with Freshness(server) as freshness:
            time.sleep(seconds)
        memory = memory_of(server, *groups)
        lags = [b["lag_ms"] for b in read_batches(job.events[begin:])]
    return Beside(lags, freshness.ages_ms, memory)


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
                state = server.client.hgetall(KEYS.state(product))
                # Before its first batch a query says only how often there is one.
                if b"update_ms" in state:
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
    store = store_of(settings)
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
                if b"rows" in state:
                    names = (b"rows", b"bytes", b"commit_ms", b"update_ms")
                    values = [float(state[name]) for name in names]
                    memory = memory_of(server, job.group)
                    rows[product].append((elapsed_s, *values, memory))
            time.sleep(1)
    print(
        f"\n{rate} trades/s, {store_of(settings)}, windows ten times "
        "as short\n\n"
        "| | third | rows | state, MiB | updates p50, ms | commit p50, ms | p99, ms | "
        "all, MiB (PSS) |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )
    for product, figures in rows.items():
        for third in range(3):
            part = [f for f in figures if int(f[0] * 3 / seconds) == third]
            if not part:
                continue
            most = [max(f[n] for f in part) for n in (1, 2, 5)]
            commits, updates = ([f[n] for f in part] for n in (3, 4))
            print(
                f"| {product} | {third + 1} | {most[0]:,.0f} | {most[1] / 2**20:.1f} | "
                f"{percentile(updates, 0.5):.0f} | "
                f"{percentile(commits, 0.5):.0f} | {percentile(commits, 0.99):.0f} | "
                f"{most[2]:,.0f} |"
            )


if __name__ == "__main__":
    main()
