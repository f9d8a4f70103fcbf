"""How a process shows its metrics: alone, or together with others of its machine.

Metrics live in a registry of their own. Where ``PROMETHEUS_MULTIPROC_DIR`` is set the
library keeps their values in files of that folder, and whoever is asked shows the sum
of all processes.
"""

import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    generate_latest,
    start_http_server,
    values,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

from ingest.settings import MetricsSettings


class MetricsUnavailable(RuntimeError):
    """Metrics cannot be served as asked; the message says why."""


class Total:
    """A counter that is told how far it has come, not by how much it grows."""

    __slots__ = ("_counter", "_known")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._known = 0.0

    def reach(self, total: float) -> None:
        """Raise the counter to a total; a smaller one than before changes nothing."""
        if total > self._known:
            self._counter.inc(total - self._known)
            self._known = total


class LabelledTotals:
    """Totals of a counter by its labels; ``known`` ones are there from the start."""

    def __init__(self, counter: Counter, known: Iterable[str] = ()) -> None:
        self._counter = counter
        self._totals = {label: Total(counter.labels(label)) for label in known}

    def reach(self, counts: Mapping[Any, int]) -> None:
        """Raise each to its count; several labels of one count are a tuple."""
        for name, count in counts.items():
            if name not in self._totals:
                labels = name if isinstance(name, tuple) else (name,)
                self._totals[name] = Total(self._counter.labels(*labels))
            self._totals[name].reach(count)


class ProcessMetrics:
    """What is to be known of any process; the library's collector knows one only.

    ``process`` is what kind it is: feed, throttle, gateway.
    """

    def __init__(self, registry: CollectorRegistry, process: str) -> None:
        self._system = psutil.Process()
        self._up = Gauge(
            "tickthrottle_processes",
            "Processes that run.",
            ["process"],
            registry=registry,
            multiprocess_mode="livesum",
        ).labels(process)
        self._memory = Gauge(
            "tickthrottle_resident_memory_bytes",
            "Memory the processes hold, without that of Spark's JVM and its workers.",
            ["process"],
            registry=registry,
            multiprocess_mode="livesum",
        ).labels(process)
        self._cpu = Total(
            Counter(
                "tickthrottle_cpu_seconds_total",
                "Processor time the processes have used, without Spark's.",
                ["process"],
                registry=registry,
            ).labels(process)
        )
        self.observe()

    def observe(self) -> None:
        """Renew all of it."""
        self._up.set(1)
        self._memory.set(self._system.memory_info().rss)
        self._cpu.reach(time.process_time())


def render(registry: CollectorRegistry, shared: Path | None) -> tuple[bytes, str]:
    """Return the metrics as Prometheus reads them, and their content type.

    With ``shared`` those of every process that keeps its own in this folder.
    """
    return generate_latest(_scraped(registry, shared)), CONTENT_TYPE_PLAIN_0_0_4


@contextmanager
def exposed(settings: MetricsSettings, registry: CollectorRegistry) -> Iterator[None]:
    """Serve metrics while the block runs, if a port was given for it.

    Afterwards those values are gone that a process only has while it runs. Raises
    MetricsUnavailable.
    """
    host, port = settings.metrics_host, settings.metrics_port
    shared = settings.metrics_dir
    server = None
    if port:
        try:
            server, thread = start_http_server(port, host, _scraped(registry, shared))
        except OSError as error:
            raise MetricsUnavailable(
                f"metrics_port {port} of {host}: {error.strerror or error}"
            ) from error
    try:
        yield
    finally:
        if server is not None:
            server.shutdown()
            server.server_close()
            thread.join()
        forget_process(os.getpid(), shared)


def keep_metrics_as(name: str, shared: Path) -> None:
    """Have this process keep its metrics in files that a successor goes on with.

    For a process that is begun again whenever it dies: the files do not become more.
    Call it before any metric is made; no other process may have the name meanwhile.
    """
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(shared)
    made = values.MultiProcessValue(lambda: name)  # type: ignore[no-untyped-call]
    values.ValueClass = made


def forget_process(process: int | str, shared: Path | None) -> None:
    """Remove from a shared folder what an ended process only had while it ran.

    ``process`` is its id, or the name it kept its metrics as.
    """
    if shared is not None:
        mark_process_dead(process, str(shared))  # type: ignore[no-untyped-call]


def _scraped(registry: CollectorRegistry, shared: Path | None) -> CollectorRegistry:
    if shared is None:
        return registry
    all_processes = CollectorRegistry()
    MultiProcessCollector(all_processes, str(shared))  # type: ignore[no-untyped-call]
    return all_processes
