"""What benchmarks share: tables, a server, memory, lags."""

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson
import psutil
import redis

from bench.load.books import read_ledger
from bench.load.percentiles import nearest_rank
from deploy.ports import free_port
from deploy.valkey import valkey_command, wait_for_server
from tests.e2e.processes import Running, running
from throttle.ledger import Ledger
from throttle.snapshot import Keys

NAMESPACE = "tt"
KEYS = Keys(NAMESPACE)
JOB = "throttle"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value at a share (0 to 1) of the sorted values, the nearest rank."""
    return nearest_rank(sorted(values), round(1_000 * share))


def print_table(title: str, rows: Iterable[tuple[str, Sequence[float]]]) -> None:
    """Print p50, p90, p99 and max of each row as a Markdown table, milliseconds."""
    print(
        f"\n{title}\n\n"
        "| ms | p50 | p90 | p99 | max |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for name, values in rows:
        cells = [percentile(values, s) for s in (0.5, 0.9, 0.99)] + [max(values)]
        print(f"| {name} | " + " | ".join(f"{cell:.0f}" for cell in cells) + " |")


class Server:
    """An embedded server, empty, on loopback, with a folder for it and its job."""

    def __init__(self, pid: int, port: int, folder: Path) -> None:
        self.pid = pid
        self.port = port
        self.folder = folder
        self.url = f"redis://127.0.0.1:{port}/0"
        self.client = redis.Redis.from_url(self.url)


@contextmanager
def running_server() -> Iterator[Server]:
    """Start a server in a folder of its own; end it and remove the folder."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        process = subprocess.Popen(
            valkey_command(port, Path(folder)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            # A terminal's Ctrl-C is for the benchmark, which then ends the server.
            start_new_session=True,
        )
        try:
            server = Server(process.pid, port, Path(folder))
            if wait_for_server(server.url, within_s=10) is None:
                raise SystemExit(f"no server on port {port}")
            with server.client:
                yield server
        finally:
            process.kill()
            process.wait()


@contextmanager
def running_job(server: Server, **settings: str) -> Iterator[Running]:
    """Run the throttle, default settings but for those given; yield it when ready."""
    # What the caller's environment says of the product is not the default.
    for name in [name for name in os.environ if name.startswith("TICKTHROTTLE_")]:
        del os.environ[name]
    folder = server.folder / "job"
    folder.mkdir()
    environment = {
        "REDIS_URL": server.url,
        "TICKTHROTTLE_STATE_DIR": str(folder),
        "TICKTHROTTLE_LOG_LEVEL": "debug",
        **settings,
    }
    with running(folder, "throttle", **environment) as job:
        job.wait_for('"event": "ready"', within_s=300)
        yield job


def end_on_signals() -> None:
    """Let SIGTERM end the benchmark as Ctrl-C does: with everything it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


Memory = dict[str, tuple[float, float]]
"""What each kind of process uses, MiB: resident, and with shared pages shared out."""


class MemoryWatch(AbstractContextManager["MemoryWatch"]):
    """Measures the memory of a job and its server again and again, in a thread."""

    def __init__(self, job_pid: int, server_pid: int, every_s: float) -> None:
        self.samples: list[Memory] = []
        self._pids = (job_pid, server_pid)
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "MemoryWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def peaks(self) -> dict[str, float]:
        """Return the highest PSS of each kind, and of the job's kinds together."""
        highest: dict[str, float] = {}
        for sample in self.samples:
            sizes = {kind: pss for kind, (_, pss) in sample.items()}
            job = sum(size for kind, size in sizes.items() if kind != "server")
            for kind, size in {**sizes, "job": job}.items():
                highest[kind] = max(highest.get(kind, 0), size)
        return highest

    def _watch(self) -> None:
        while not self._stop.wait(self._every_s):
            self.samples.append(measure_memory(*self._pids))


def measure_memory(job_pid: int, server_pid: int) -> Memory:
    """Return what driver, JVM, Python workers and server use at the moment."""
    found: Memory = {}
    with suppress(psutil.NoSuchProcess):
        found |= _add(found, "driver", psutil.Process(job_pid))
        found |= _add(found, "server", psutil.Process(server_pid))
        for child in psutil.Process(job_pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                kind = "JVM" if child.name() == "java" else "workers"
                found |= _add(found, kind, child)
    return found


def _add(found: Memory, kind: str, process: psutil.Process) -> Memory:
    used = process.memory_full_info()
    resident, proportional = found.get(kind, (0.0, 0.0))
    return {kind: (resident + used.rss / 2**20, proportional + used.pss / 2**20)}


class PublishedWindows:
    """Follows the window log: how long after its end each window was published."""

    def __init__(self, server: Server) -> None:
        self._client: Any = server.client
        self._last = "0-0"
        self.lags_ms: dict[int, float] = {}

    def follow(self) -> None:
        """Add what was published since the last call."""
        for entry_id, fields in self._client.xrange(
            KEYS.windows, f"({self._last}", "+"
        ):
            header = orjson.loads(fields[b"snapshot"].split(b"\n", 1)[0])
            window = header["window"]
            self.lags_ms[window] = header["published"] / 1_000 - window
            self._last = entry_id.decode()


def wait_for_books(
    server: Server, job: Running, after_ms: int, within_s: float
) -> Ledger:
    """Wait until the books reach past a time and were compared with the log there.

    Raises SystemExit when that takes too long, or when the job ends before.
    """
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline and job.process.poll() is None:
        ledger = read_ledger(server.client, NAMESPACE, JOB)
        if ledger is not None and (ledger.checked_ms or 0) > after_ms:
            return ledger
        time.sleep(0.1)
    raise SystemExit(f"the job did not get to {after_ms}:\n{job.log()[-3_000:]}")
