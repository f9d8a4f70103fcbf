"""Spark's daemon of the workers that run tasks; what they need it loads before.

Spark's own daemon loads PySpark, and each worker that it forks loads the rest: half a
second, and memory that the workers of this one share. A worker that gets SIGUSR1 says
on stderr, which is the job's, where each of its threads is, and goes on.
"""

import faulthandler
import gc
import signal

import pyarrow as pa
import pyspark.sql.worker.plan_data_source_read
import pyspark.worker  # noqa: F401
from pyspark import daemon

import throttle.spark.reader
import throttle.spark.source
import throttle.spark.task_publish  # noqa: F401
from throttle.spark.worker_daemon import quiet_workers


def main() -> None:
    """Fork workers until Spark has ended."""
    quiet_workers(daemon)
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1)
    # Who looks through shared memory for garbage gets a copy of it.
    gc.collect()
    gc.freeze()
    pa.system_memory_pool().release_unused()
    daemon.manager()


if __name__ == "__main__":
    main()
