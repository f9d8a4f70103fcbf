"""Gives memory back while nobody waits for the job."""

import os
import time

import psutil
import pyarrow as pa
from pyspark.sql import SparkSession

# A minute after its last answer Spark ends a planner's worker, or forgets that it has
# ended; it looks every ten seconds.
_FORGOTTEN_AFTER_S = 90.0


class IdleCollector:
    """Gives memory back, every ``every_s`` seconds at most; one for each start.

    Java looks through its whole heap. By itself it does so when the heap is full: then
    it is as large as it may be, and the 140 ms that it stands still are as likely as
    not the end of a window. So does this process, and planners end that are idle.
    """

    def __init__(self, every_s: float) -> None:
        self._every_s = every_s
        self._began_s = time.monotonic()
        self._due_s = self._began_s + every_s

    def idle(self, spark: SparkSession) -> bool:
        """Take the chance that nobody waits now; return whether it was taken."""
        if time.monotonic() < self._due_s:
            return False
        spark._jvm.java.lang.System.gc()  # type: ignore[union-attr]
        pa.system_memory_pool().release_unused()
        now_s = time.monotonic()
        if now_s - self._began_s > _FORGOTTEN_AFTER_S:
            end_idle_planners()
        self._due_s = now_s + self._every_s
        return True


def end_idle_planners() -> int:
    """End the daemons of planners without a worker; return how many those were.

    A query asks its planners once: their daemons, 25 MiB each, would stay as long as
    the job. Spark starts another one when it finds that one has gone, but fails if it
    still knows of one of its workers. Java has to be a child of this process.
    """
    ended = 0
    for process in psutil.Process().children(recursive=True):
        try:
            if _is_idle_planner(process):
                process.terminate()
                ended += 1
        except (psutil.NoSuchProcess, ProcessLookupError):
            continue
    return ended


def _is_idle_planner(process: psutil.Process) -> bool:
    command = process.cmdline()
    return (
        "pyspark.daemon" in command
        and command[-1].startswith("pyspark.sql.worker.")
        # A worker has its daemon's command, but is in its group.
        and os.getpgid(process.pid) == process.pid
        and not process.children()
    )
