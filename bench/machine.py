"""What benchmarks share: tables, a server, a job."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser, BooleanOptionalAction, Namespace
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import redis

from cli.local.child import ChildProcess
from cli.local.process_tree import Named, job_family, members
from cli.local.valkey import valkey_command, wait_for_server
from ingest.instrument_table.instrument_list import parse_list
from ingest.instrument_table.redis_instrument_store import RedisInstrumentStore
from ingest.instrument_table.table_loader import load_list
from ingest.process.direct_http import open_direct
from ingest.process.ports import free_port
from ingest.redis_keys import Keys
from ingest.sources.market import encode_instruments
from ingest.sources.simulator import Simulator
from loadtest.figures.percentiles import nearest_rank
from loadtest.system.machine import describe_machine

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMESPACE = "tt"
KEYS = Keys(NAMESPACE)
JOB = "throttle"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at a share (0 to 1) of the sorted values, the nearest rank."""
    return nearest_rank(sorted(values), round(1_000 * share))


Row = dict[str, str]
"""A row of a table by the heads of its columns."""


def print_table(title: str, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
    """Print p50, p90, p99 and max of each row, milliseconds."""
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    print_rows(
        title,
        [
            {"ms": name}
            | {head: f"{percentile(values, s):.0f}" for head, s in shares.items()}
            for name, values in rows
        ],
    )


def print_rows(title: str, rows: Sequence[Row]) -> None:
    """Print rows with the same columns as a Markdown table, nothing without rows."""
    if rows:
        print(f"\n{title}\n\n| {' | '.join(rows[0])} |")
        print(f"| --- |{' ---: |' * (len(rows[0]) - 1)}")
    for row in rows:
        print(f"| {' | '.join(row.values())} |")


def print_machine(more: str = "") -> None:
    """Print which machine the figures are from."""
    print(f"\nMachine: {describe_machine()}{more}")


@contextmanager
def child(
    *command: str, ends_by: signal.Signals = signal.SIGKILL, **options: Any
) -> Iterator["subprocess.Popen[Any]"]:
    """Run a program within the block; what it prints goes nowhere, but for errors."""
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL}
    with subprocess.Popen(command, **(quiet | options)) as process:
        try:
            yield process
        finally:
            process.send_signal(ends_by)
            # After a Ctrl-C the end of the block does not wait.
            process.wait()


@dataclass(frozen=True)
class Server:
    """An embedded server, empty, on loopback, with a folder for it and its job."""

    pid: int
    port: int
    folder: Path
    url: str
    client: redis.Redis


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server in a folder of its own; end it and remove the folder."""
    port = free_port()
    url = f"redis://127.0.0.1:{port}/0"
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as name,
        # A terminal's Ctrl-C is for the benchmark, which then ends the server.
        child(*valkey_command(port, Path(name)), start_new_session=True) as process,
        redis.Redis.from_url(url) as client,
    ):
        if wait_for_server(url, within_s=10) is None:
            raise SystemExit(f"no server on port {port}")
        yield Server(process.pid, port, Path(name), url, client)


class Program(ChildProcess):
    """A program that runs; ``events`` are the lines of its log, in their order."""

    def __init__(
        self, name: str, command: Sequence[str], folder: Path, settings: dict[str, str]
    ) -> None:
        self.events: list[dict[str, Any]] = []
        log = folder / f"{name}.log"
        super().__init__(
            name, command, settings, log, lambda _, fields: self.events.append(fields)
        )

    def wait_for(self, event: str, within_s: float) -> None:
        """Wait until it has logged an event. Raises SystemExit if it does not."""
        deadline = time.monotonic() + within_s
        while not any(fields["event"] == event for fields in list(self.events)):
            self.check_runs()
            if time.monotonic() > deadline:
                raise SystemExit(f"{self.name} was not {event} within {within_s:g} s")
            time.sleep(0.1)

    def check_runs(self) -> None:
        """Raise SystemExit with the end of its log if it has ended."""
        if self.exit_code() is not None:
            raise SystemExit("\n".join([f"{self.name} ended:", *self.last_lines(20)]))

    def end(self) -> None:
        """Ask it to end; kill what is left after a while."""
        self.terminate()
        deadline = time.monotonic() + 15
        while not self.has_ended() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.kill()


@contextmanager
def running_job(server: Server, **settings: str) -> Iterator[Program]:
    """Run the throttle, default settings but for those given; yield it when ready."""
    with starting_job(server, **settings) as job:
        job.wait_for("ready", within_s=300)
        yield job


@contextmanager
def starting_job(
    server: Server, job: str = "throttle", **settings: str
) -> Iterator[Program]:
    """Run a job, default settings but for those given; yield it at once."""
    # What the caller's environment says of the product is not the default.
    for name in [name for name in os.environ if name.startswith("TICKTHROTTLE_")]:
        del os.environ[name]
    folder = server.folder / "job"
    folder.mkdir()
    environment = {
        **os.environ,
        "REDIS_URL": server.url,
        "TICKTHROTTLE_STATE_DIR": str(folder),
        "TICKTHROTTLE_LOG_LEVEL": "debug",
        **settings,
    }
    command = [sys.executable, "-m", "tickthrottle", job]
    program = Program(job, command, folder, environment)
    try:
        yield program
    finally:
        program.end()


def load_table(server: Server, instruments: int) -> None:
    """Have the instrument table name the simulated instruments."""
    listing = Simulator(instruments=instruments).listing()
    entries = parse_list(encode_instruments(listing).splitlines(keepends=True))
    store = RedisInstrumentStore(server.client, NAMESPACE)
    load_list(store, entries, is_forced=True)


def wait_ready(port: int, process: "subprocess.Popen[Any]", within_s: float) -> None:
    """Wait until a process says at its port that it is ready. Raises SystemExit."""
    deadline_s = time.monotonic() + within_s
    while time.monotonic() < deadline_s and process.poll() is None:
        # An answer that says no is one of these errors, too.
        with suppress(OSError), open_direct(f"http://127.0.0.1:{port}/health/ready", 5):
            return
        time.sleep(0.2)
    raise SystemExit(f"{process.args!r} was not ready within {within_s:g} s")


@contextmanager
def feeding(server: Server, rate: int) -> Iterator["subprocess.Popen[Any]"]:
    """Run a simulated market within the block."""
    with child(
        *(sys.executable, "-m", "tickthrottle", "simulate"),
        *("--rate", str(rate), "--redis-url", server.url),
        ends_by=signal.SIGTERM,
        stderr=subprocess.DEVNULL,
    ) as feed:
        yield feed


@contextmanager
def running_everything(
    *options: str,
) -> Iterator[tuple["subprocess.Popen[Any]", int, int]]:
    """Run the whole pipeline in a folder of its own; yield it and its two ports."""
    port, operators_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        settings = {
            "TICKTHROTTLE_PORT": str(port),
            "TICKTHROTTLE_OPERATORS_PORT": str(operators_port),
            "TICKTHROTTLE_STATE_DIR": folder,
        }
        with child(
            *(sys.executable, "-m", "tickthrottle", "run", *options),
            ends_by=signal.SIGINT,
            env={**os.environ, **settings},
        ) as run:
            yield run, port, operators_port


def memory_by_name(processes: Iterable[Named]) -> Counter[str]:
    """Return the bytes (PSS) of processes, added up by name; of none that has ended."""
    used: Counter[str] = Counter()
    for name, process in processes:
        # Java runs commands that end at once.
        with suppress(psutil.NoSuchProcess):
            used[name.strip()] += process.memory_full_info().pss
    return used


def memory_of(server: Server, job: Program) -> Counter[str]:
    """Return the bytes (PSS) of the server, the job, and each part of the job."""
    parts = [*members("server", server.pid), *job_family("", job.group)]
    used = memory_by_name(parts)
    used["job"] = used.total() - used["server"]
    return used


def read_batches(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each batch that a job has logged, with Spark's own figures of it."""
    batches: dict[int, dict[str, Any]] = {}
    progress: dict[int, dict[str, Any]] = {}
    by_event = {"batch": batches, "progress": progress}
    for fields in events:
        if fields.get("event") in by_event:
            by_event[fields["event"]][fields["batch"]] = fields
    return [{**progress.get(number, {}), **batches[number]} for number in batches]


@contextmanager
def running_chromium() -> Iterator["Browser"]:
    """Run a Chromium as the tests do; the script ends where there is none."""
    from playwright.sync_api import sync_playwright

    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no chromium on PATH")
    arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, args=arguments)
        yield launched
        launched.close()


def options(document: str | None, **known: Any) -> Namespace:
    """Return what the command line says.

    Each option has a default, which tells its kind (a switch, a list, a number, a
    text), words, and perhaps choices. From now on SIGTERM ends the benchmark as Ctrl-C
    does: with everything it started.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parser = ArgumentParser(description=document)
    for name, (default, words, *choices) in known.items():
        more: dict[str, Any] = {"action": BooleanOptionalAction}
        if not isinstance(default, bool):
            is_list = isinstance(default, list)
            more = {"type": type(default[0] if is_list else default)}
            more |= {"nargs": "+"} if is_list else {}
            more |= {"choices": choices[0]} if choices else {}
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, default=default, help=words, **more)
    return parser.parse_args()
