"""What processes and the machine use while a load runs, sampled in a thread."""

import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import psutil

from cli.local.process_tree import Named
from loadtest.results import Points, ProcessUsage

CPU_EVERY_S = 1.0
MEMORY_EVERY_S = 5.0
PSS_WITHIN_S = 0.02
"""A process whose PSS takes longer to find out is measured by its RSS from then on,
less what it shared then: the kernel goes through all of its pages, and holds it up
meanwhile.
"""

_FRESH_MS = 2_500
"""A sample older than this says nothing of a moment."""

Find = Callable[[], Iterable[Named]]


@dataclass(slots=True)
class Series:
    """Samples of one name; several processes may have it, then they are added up."""

    name: str
    is_ours: bool
    pid: int = 0
    cpu: list[tuple[float, float]] = field(default_factory=list)
    memory_mib: list[tuple[float, float]] = field(default_factory=list)


class Usage:
    """Samples processes by name; one that ends or starts meanwhile is no trouble.

    ``tested`` and ``ours`` find the processes there are; they are asked every few
    seconds, and whenever one has ended. CPU is in shares of one core, the machine's in
    cores; memory is PSS where that is cheap, else RSS less what others had part in.
    """

    def __init__(self, tested: Find, ours: Find) -> None:
        self._find = {False: tested, True: ours}
        self._series: dict[tuple[str, bool], Series] = {}
        self._machine: list[tuple[float, float]] = []
        self._busy: tuple[float, float] | None = None
        self._processes: list[tuple[Named, bool]] = []
        self._spent: dict[psutil.Process, tuple[float, float]] = {}
        self._shared: dict[psutil.Process, int] = {}
        self._find_again_s = 0.0
        self._stop = threading.Event()

    def run(self) -> None:
        """Sample until told to stop, once a second; never catches up."""
        while not self._stop.is_set():
            self.sample(time.time() * 1_000, time.monotonic())
            self._stop.wait(CPU_EVERY_S)

    def stop(self) -> None:
        """Have ``run`` return soon."""
        self._stop.set()

    def sample(self, now_ms: float, clock_s: float) -> None:
        is_due = clock_s >= self._find_again_s
        if is_due:
            self._find_again_s = clock_s + MEMORY_EVERY_S
            self._look_for()
        cpu: dict[tuple[str, bool], float] = {}
        memory: dict[tuple[str, bool], float] = {}
        for named, is_ours in self._processes:
            key = named.name, is_ours
            try:
                share = self._share(named.process, clock_s)
                if is_due:
                    memory[key] = memory.get(key, 0) + self._mib(named)
            except psutil.Error:
                # It has ended: see at once what came in its place.
                self._find_again_s = clock_s
                continue
            if share is not None:
                cpu[key] = cpu.get(key, 0) + share
        for key, share in cpu.items():
            self._series[key].cpu.append((now_ms, share))
        for key, mib in memory.items():
            self._series[key].memory_mib.append((now_ms, mib))
        self._sample_machine(now_ms, clock_s)

    def processes(self, at_ms: Sequence[float]) -> list[ProcessUsage]:
        """Return every process there was, along an axis: what is tested first."""
        return [
            ProcessUsage(
                series.name,
                series.pid,
                series.is_ours,
                _along(series.cpu, at_ms, _FRESH_MS),
                # In between it has hardly changed.
                _along(series.memory_mib, at_ms, 2 * MEMORY_EVERY_S * 1_000),
            )
            for series in sorted(self._series.values(), key=lambda s: s.is_ours)
        ]

    def machine(self, at_ms: Sequence[float]) -> Points:
        """Return what all processes of the machine used, in cores, along an axis."""
        return _along(self._machine, at_ms, _FRESH_MS)

    def _look_for(self) -> None:
        self._processes = [
            (named, is_ours) for is_ours, find in self._find.items() for named in find()
        ]
        for named, is_ours in self._processes:
            key = named.name, is_ours
            series = self._series.setdefault(key, Series(*key))
            if series.pid not in (p.process.pid for p, _ in self._processes):
                series.pid = named.process.pid
        there = {named.process for named, _ in self._processes}
        self._spent = {p: spent for p, spent in self._spent.items() if p in there}

    def _share(self, process: psutil.Process, clock_s: float) -> float | None:
        """Return the share of a core since the last sample, None of the first."""
        times = process.cpu_times()
        spent_s = times.user + times.system
        before = self._spent.get(process)
        self._spent[process] = clock_s, spent_s
        if before is None or clock_s <= before[0]:
            return None
        return (spent_s - before[1]) / (clock_s - before[0])

    def _mib(self, named: Named) -> float:
        process = named.process
        if process in self._shared:
            return float(process.memory_info().rss - self._shared[process]) / 2**20
        began_s = time.perf_counter()
        try:
            memory = process.memory_full_info()
            used: int = memory.pss
        except (AttributeError, psutil.AccessDenied):
            # Another system than Linux, or another user's process.
            self._shared[process] = 0
            return self._mib(named)
        if time.perf_counter() - began_s > PSS_WITHIN_S:
            # No step in the series where the measure changes.
            self._shared[process] = memory.rss - used
        return used / 2**20

    def _sample_machine(self, now_ms: float, clock_s: float) -> None:
        times = psutil.cpu_times()
        # What a guest uses is in ``user`` already; what others took was not ours.
        names = ("user", "nice", "system", "irq", "softirq")
        busy_s = sum(getattr(times, name, 0.0) for name in names)
        if self._busy is not None and clock_s > self._busy[0]:
            cores = (busy_s - self._busy[1]) / (clock_s - self._busy[0])
            self._machine.append((now_ms, cores))
        self._busy = clock_s, busy_s


@contextmanager
def usage_of(tested: Find, ours: Find) -> Iterator[Usage]:
    """Sample what is tested, and what belongs to the load, until the end."""
    usage = Usage(tested, ours)
    thread = threading.Thread(target=usage.run, name="usage", daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        usage.stop()
        thread.join()


def _along(
    samples: Sequence[tuple[float, float]], at_ms: Sequence[float], fresh_ms: float
) -> list[float | None]:
    """Return the newest sample at each moment, None where it is not fresh."""
    times = [time_ms for time_ms, _ in samples]
    values: list[float | None] = []
    for moment_ms in at_ms:
        place = bisect_right(times, moment_ms) - 1
        is_fresh = place >= 0 and moment_ms - times[place] <= fresh_ms
        values.append(samples[place][1] if is_fresh else None)
    return values
