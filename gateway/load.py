"""Samples what the process uses: its memory, and how late its event loop is."""

import asyncio
import time
from collections.abc import Callable

import psutil

from gateway.overload import Overload

SAMPLE_S = 0.1


class LoadMonitor:
    """The newest sample, and what ``Overload`` makes of them.

    ``on_sample`` is called after each with the loop's lag in seconds.
    """

    def __init__(self, overload: Overload, on_sample: Callable[[float], None]) -> None:
        self._overload = overload
        self._on_sample = on_sample
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
            self.rss_bytes = self._process.memory_info().rss
            self._overload.observe(now_s, self.rss_bytes, self.lag_s)
            self._on_sample(self.lag_s)
