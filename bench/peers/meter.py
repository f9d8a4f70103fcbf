"""Processor time and memory of an engine, with all of its processes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import psutil

EVERY_S = 0.5
MEMORY_EVERY = 6
"""So many samples of the processor for one of the memory, which costs more."""


class Meter:
    """Samples a process and its children until told to stop."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._spent_s: dict[psutil.Process, float] = {}
        self._processor: list[tuple[float, float]] = []
        self._memory: list[tuple[float, int]] = []
        self._stop = threading.Event()

    def run(self) -> None:
        """Sample until told to stop."""
        with suppress(psutil.NoSuchProcess):
            while not self._stop.is_set():
                has_memory = len(self._processor) % MEMORY_EVERY == 0
                self.sample(time.time() * 1_000, has_memory=has_memory)
                self._stop.wait(EVERY_S)

    def stop(self) -> None:
        """Have ``run`` return soon."""
        self._stop.set()

    def sample(self, now_ms: float, *, has_memory: bool) -> None:
        """Take a sample. Raises psutil.NoSuchProcess when the engine has ended."""
        memory = 0
        for process in [self._root, *self._root.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                # One that ends has spent what it had spent when it was last seen.
                self._spent_s[process] = times.user + times.system
                if has_memory:
                    memory += process.memory_full_info().pss
        self._processor.append((now_ms, sum(self._spent_s.values())))
        if has_memory:
            self._memory.append((now_ms, memory))

    def processor_s(self, at_ms: float) -> float:
        """Return the seconds of processor spent up to a moment, as far as sampled."""
        before_ms, before_s = 0.0, 0.0
        for now_ms, spent_s in self._processor:
            if now_ms >= at_ms:
                share = (at_ms - before_ms) / (now_ms - before_ms)
                return before_s + share * (spent_s - before_s) if before_ms else spent_s
            before_ms, before_s = now_ms, spent_s
        return before_s

    def memory_mib(self, from_ms: float, to_ms: float) -> float:
        """Return the median of the memory between two moments, PSS."""
        within = [size for at, size in self._memory if from_ms <= at <= to_ms]
        # A short run may have none of its own.
        return median(within or [size for _, size in self._memory[-1:]]) / 2**20


@contextmanager
def metered(pid: int) -> Iterator[Meter]:
    """Sample a process and its children for as long as the block runs."""
    meter = Meter(pid)
    thread = threading.Thread(target=meter.run, name="meter", daemon=True)
    thread.start()
    try:
        yield meter
    finally:
        meter.stop()
        thread.join()
