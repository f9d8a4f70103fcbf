"""Spark's physical plan of a batch, from Spark itself."""

import time
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from ingest.tradelog.contract import LogInfo
from throttle.job import start_query
from throttle.settings import ThrottleSettings
from throttle.spark.options import made_up_windows, source_options
from throttle.spark.own_session import own_spark
from throttle.spark.query import first_line
from throttle.spark.sink import BatchSink, InstrumentFrame, discard
from throttle.spark.warmup import made_up_instruments
from throttle.window.conflate import create_conflate

_WITHIN_S = 120.0


class ExplainFailed(RuntimeError):
    """Spark gave no plan; the message says why."""


def explain(settings: ThrottleSettings) -> dict[str, str]:
    """Start Spark as the job does, run a made-up batch, and return its plans by names.

    Neither Redis nor the job's own checkpoint is touched. Raises ExplainFailed.
    """
    with own_spark(settings, ExplainFailed) as (spark, scratch):
        return _run_one_batch(spark, settings, scratch / "explain")


def _run_one_batch(
    spark: SparkSession, settings: ThrottleSettings, checkpoint: Path
) -> dict[str, str]:
    info = LogInfo("made-up", settings.partitions, time.time_ns() // 1_000_000)
    options = made_up_windows(source_options(settings, info), live=1)
    capture = _PlanCapture(settings.window_ms)
    query = start_query(spark, options, capture, checkpoint)
    deadline = time.monotonic() + _WITHIN_S
    while len(capture.plans) < 2:
        if not query.isActive:
            raise ExplainFailed(first_line(capture.error or query.exception()))
        if time.monotonic() > deadline:
            raise ExplainFailed(f"Spark ran no batch within {_WITHIN_S:.0f} s")
        time.sleep(0.05)
    query.stop()
    return capture.plans


class _PlanCapture(BatchSink):
    """A sink that runs a batch as the job does, publishes nothing and keeps plans."""

    def __init__(self, window_ms: int) -> None:
        self._instruments = made_up_instruments()
        super().__init__(
            window_ms, discard, newest_instruments=lambda: self._instruments
        )
        self._joined = InstrumentFrame()
        self._transform = create_conflate(window_ms)
        self.plans: dict[str, str] = {}

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        super().__call__(frame, batch_id)
        _, instruments = self._joined.of(frame.sparkSession, self._instruments)
        for name, is_live in ("a live window", True), ("a backlog", False):
            with redirect_stdout(StringIO()) as printed:
                self._transform(frame, is_live, instruments).explain(mode="formatted")
            self.plans[name] = printed.getvalue().strip()
