"""Where the time of every batch went: told to the log, to metrics, to operators.

``Keys.stages`` holds those of the newest batch, for whoever asks. It is written in a
thread of its own and with short deadlines: no batch waits for it, and nothing fails
when Redis is away. What was not written is replaced by what is newer.
"""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Self

import redis
import structlog
from pyspark.sql.streaming.query import StreamingQuery
from redis.backoff import NoBackoff
from redis.retry import Retry

from throttle.publish.publisher import PublishOutcome
from throttle.window.batch import Batch, PartitionCount
from tickthrottle_client.redis_primary import connect

if TYPE_CHECKING:
    # The metrics are of batch reports.
    from throttle.telemetry.metrics import ThrottleMetrics

_ANSWER_WITHIN_S = 1.0
_LOOK_EVERY_S = 0.05

StageFields = Mapping[str, str]

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A published batch: when, by this machine's time of day; where its time went."""

    batch_id: int
    batch: Batch
    published: PublishOutcome
    published_s: float
    stages_s: Mapping[str, float]

    @property
    def counts(self) -> Sequence[PartitionCount]:
        """What was read of each partition, with what the batch takes back."""
        return self.published.counts or self.batch.counts


SPARK_STAGES = {
    "queryPlanning": "query_planning",
    "walCommit": "offset_log",
    "getBatch": "get_batch",
    "commitOffsets": "commit_log",
}
"""What Spark does around a batch, by its own name, but waiting for a window's end."""


def spark_stages(durations_ms: Mapping[str, int]) -> dict[str, float]:
    """Return in seconds where Spark spent a batch outside of our own stages."""
    return {
        name: durations_ms[theirs] / 1000
        for theirs, name in SPARK_STAGES.items()
        if theirs in durations_ms
    }


def stage_fields(report: BatchReport, spark_s: Mapping[str, float]) -> StageFields:
    """Return the hash ``Keys.stages`` of a batch: its number, window and stages."""
    stages = {**report.stages_s, **spark_s}
    return {
        "batch": str(report.batch_id),
        "window": str(report.batch.end.end_ms),
        **{f"{name}_ms": str(round(s * 1000)) for name, s in stages.items()},
    }


class BatchReporter:
    """Brings together what the sink and what Spark know of a batch."""

    def __init__(
        self, metrics: "ThrottleMetrics", write: Callable[[StageFields], None]
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
                spark_s = spark_stages(progress.durationMs)
                self._metrics.spent(spark_s)
                self._write(stage_fields(report, spark_s))
                log.debug("progress", batch=report.batch_id, **progress.durationMs)


class StageWriter:
    """Writes the newest batch's stages, until closed. A context manager."""

    def __init__(self, redis_url: str, key: str) -> None:
        self._client = connect(
            redis_url,
            socket_timeout=_ANSWER_WITHIN_S,
            socket_connect_timeout=_ANSWER_WITHIN_S,
            retry=Retry(NoBackoff(), 0),
        )
        self._key = key
        self._newest: StageFields | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="stages", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._thread.join()
        self._client.close()

    def write(self, fields: StageFields) -> None:
        """Have them written soon."""
        self._newest = fields

    def _run(self) -> None:
        while not self._closing.wait(_LOOK_EVERY_S):
            fields, self._newest = self._newest, None
            if not fields:
                continue
            # What fails is replaced by the next batch's.
            with suppress(redis.RedisError), self._client.pipeline() as pipe:
                pipe.delete(self._key)
                pipe.hset(self._key, items=list(chain(*fields.items())))
                pipe.execute()


def _log(report: BatchReport) -> None:
    published = report.published
    if unknown := sum(count.unknown_target for count in report.counts):
        log.warning("trades to take back were not found", entries=unknown)
    stages_s, end_ms = report.stages_s, report.batch.end.end_ms
    # Of a live window's batch: when it ended, less what was done before that.
    began_s = report.published_s - sum(stages_s.values())
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
        lag_ms=round(report.published_s * 1000 - end_ms, 1),
    )
