"""Says in the log when the trade log itself is away: nobody else would.

Spark asks for the next cut in a process of its own, and while there is none it asks
again and says nothing. So where windows stay out, the job asks for itself.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Self

import redis

from ingest.tradelog.contract import LogAway, LogReader, LogUnusable, Tail
from throttle.contract.cut import Cut
from throttle.contract.lateness import is_late
from throttle.lease.retry import OutageLog
from throttle.telemetry.metrics import ThrottleMetrics

LOG = "the trade log"
"""What it is called where Redis is something else."""

_LOOK_EVERY_S = 0.5
_MEASURE_EVERY_S = 2.0
# However short the windows are: an answer may take its time.
_QUIET_AT_LEAST_S = 3.0


class LogWatch:
    """Looks after a log in the background, until closed. A context manager.

    ``newest`` tells the cut that was published last, and when by the monotonic clock.
    ``error`` is what will not pass by itself. ``metrics`` gets to know what waits in
    the log.
    """

    def __init__(
        self,
        reader: LogReader,
        window_ms: int,
        newest: Callable[[], tuple[Cut, float]],
        metrics: ThrottleMetrics | None = None,
    ) -> None:
        self._reader = reader
        self._newest = newest
        self._metrics = metrics
        self._measured_s = 0.0
        self._window_ms = window_ms
        tell = None if metrics is None else partial(metrics.server_away, "trade_log")
        self._outage = OutageLog(LOG, tell)
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self.error: LogUnusable | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_EVERY_S):
            cut, at_s = self._newest()
            try:
                if self._is_quiet(time.monotonic() - at_s):
                    self._look(cut)
                self._outage.answered("watch")
                self._measure(cut)
            except redis.RedisError:
                # A log in Redis: whoever renews the lease says that it is away.
                continue
            except LogAway as error:
                self._outage.failed("watch", error)
            except LogUnusable as error:
                self.error = error
                return

    def _is_quiet(self, for_s: float) -> bool:
        is_long = for_s > _QUIET_AT_LEAST_S
        return is_long and is_late(for_s * 1000, self._window_ms)

    def _look(self, cut: Cut) -> None:
        tail = self._reader.tail(self._reader.clock_ms())
        for partition, end in zip(tail.partitions, tail.positions, strict=True):
            if end < cut.position(partition):
                raise LogAway(
                    f"partition {partition} ends at {end}, but "
                    f"{cut.position(partition)} was there before"
                )

    def _measure(self, cut: Cut) -> None:
        now_s = time.monotonic()
        if self._metrics is None or now_s - self._measured_s < _MEASURE_EVERY_S:
            return
        self._measured_s = now_s
        with suppress(LogAway):
            tail = self._reader.tail(self._reader.clock_ms())
            self._metrics.waiting(lags(cut, tail))


def lags(cut: Cut, tail: Tail) -> Iterator[tuple[int, int]]:
    """Yield for each partition how many entries stand behind a cut, where known."""
    for partition, end in zip(tail.partitions, tail.counts, strict=True):
        read = cut.count(partition)
        if end is not None and read is not None and cut.partitions:
            yield partition, max(0, end - read)
