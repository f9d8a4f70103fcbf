"""Tells where the time of every batch went: to the log, to metrics, to operators."""

from collections import deque
from collections.abc import Callable, Mapping

import structlog
from pyspark.sql.streaming.query import StreamingQuery

from throttle.metrics import ThrottleMetrics
from throttle.report import BatchReport, spark_stages
from throttle.stages import Fields, stage_fields

log = structlog.get_logger()


class Progress:
    """Brings together what the sink and what Spark know of a batch."""

    def __init__(
        self, metrics: ThrottleMetrics, write: Callable[[Fields], None]
    ) -> None:
        self._metrics = metrics
        self._write = write
        # Spark is a batch behind when batches follow each other without a pause.
        self._open: deque[BatchReport] = deque(maxlen=2)

    def published(self, report: BatchReport) -> None:
        """Take in a batch as soon as it is published; Spark is not done with it."""
        self._metrics.published(report)
        self._open.append(report)
        _log(report)

    def look(self, query: StreamingQuery) -> None:
        """Take in what Spark says of the batch once it is done with it."""
        self._metrics.process.observe()
        if not self._open:
            return
        progress = query.lastProgress
        for report in tuple(self._open):
            if progress is None or report.batch_id > progress.batchId:
                return
            self._open.popleft()
            if report.batch_id == progress.batchId:
                self._done(report, progress.durationMs)

    def _done(self, report: BatchReport, durations_ms: Mapping[str, int]) -> None:
        spark_s = spark_stages(durations_ms)
        self._metrics.spent(spark_s)
        self._write(stage_fields(report, spark_s))
        log.debug("progress", batch=report.batch_id, **durations_ms)


def _log(report: BatchReport) -> None:
    published = report.published
    stages_s = report.stages_s
    began_s = report.published_s - sum(stages_s.values())
    end_ms = report.batch.end.end_ms
    log.debug(
        "batch",
        batch=report.batch_id,
        window=end_ms,
        windows=published.windows,
        rows=published.rows,
        stale=published.stale,
        offset=published.offset,
        began_ms=round(began_s * 1000 - end_ms, 1),
        **{f"{name}_ms": round(s * 1000, 1) for name, s in stages_s.items()},
        lag_ms=round(report.lag_s * 1000, 1),
    )
