"""When a gateway has more than it can serve well, and when that is over."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

SAMPLE_S = 0.1

SUSTAINED_S = 2.0
"""A threshold counts as crossed when every sample was beyond it for this long."""

RELIEF = 0.8
"""Overload ends below this share of both thresholds."""


class Overload:
    """Judges samples of the process's memory and of its event loop's lag.

    New clients are sent away while ``reason`` is not None, so that those who are
    there already are served; of a process that ``is_late`` rather the clients go for
    whom it works most. Memory is in bytes, the rest in seconds.
    """

    def __init__(self, most_bytes: int, most_lag_s: float) -> None:
        self._most_bytes = most_bytes
        self._most_lag_s = most_lag_s
        self._differs_since_s: float | None = None
        self._lag_s = 0.0
        self.reason: str | None = None

    @property
    def is_late(self) -> bool:
        """Whether its event loop is late, and that is too much."""
        return self.reason is not None and self._lag_s > self._most_lag_s * RELIEF

    def observe(self, now_s: float, rss_bytes: int, lag_s: float) -> None:
        """Take in a sample. ``now_s`` may come from any clock that does not go back."""
        self._lag_s = lag_s
        share = 1.0 if self.reason is None else RELIEF
        excess = self._excess(rss_bytes, lag_s, share)
        if (excess is None) == (self.reason is None):
            self._differs_since_s = None
            self.reason = excess
            return
        if self._differs_since_s is None:
            self._differs_since_s = now_s
        if now_s - self._differs_since_s >= SUSTAINED_S:
            self._differs_since_s = None
            self.reason = excess

    def _excess(self, rss_bytes: int, lag_s: float, share: float) -> str | None:
        if rss_bytes > self._most_bytes * share:
            use = f"uses {rss_bytes >> 20} MiB of memory, {self._most_bytes >> 20} MiB"
        elif lag_s > self._most_lag_s * share:
            use = f"is {lag_s * 1_000:.0f} ms late, {self._most_lag_s * 1_000:.0f} ms"
        else:
            return None
        return f"the gateway {use} is the most for new clients"


class LoadMonitor:
    """Samples the process's memory and its event loop's lag, for ``Overload`` to judge.

    ``on_sample`` is called after each with the loop's lag in seconds, ``on_late`` if
    that has been too much for too long.
    """

    def __init__(
        self,
        overload: Overload,
        on_sample: Callable[[float], None],
        on_late: Callable[[], None],
    ) -> None:
        self._overload = overload
        self._on_sample = on_sample
        self._on_late = on_late
        self._process = psutil.Process()
        self.lag_s = 0.0
        self.rss_bytes = 0

    @property
    def excess(self) -> str | None:
        """Why new clients are sent away, None while they are not."""
        return self._overload.reason

    async def run(self) -> None:
        """Take samples until cancelled."""
        while True:
            began_s = time.monotonic()
            await asyncio.sleep(SAMPLE_S)
            now_s = time.monotonic()
            self.lag_s = max(0.0, now_s - began_s - SAMPLE_S)
            with suppress(OSError):
                # No descriptor is left, maybe: the last figure serves.
                self.rss_bytes = self._process.memory_info().rss
            self._overload.observe(now_s, self.rss_bytes, self.lag_s)
            self._on_sample(self.lag_s)
            if self._overload.is_late:
                self._on_late()
