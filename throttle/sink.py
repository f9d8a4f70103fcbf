"""What Spark calls with every batch: conflate, assemble, publish."""

import time
from collections.abc import Callable

import structlog
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ingest.collector import no_collection
from throttle.batch import Batch, assemble
from throttle.conflate import create_conflate
from throttle.cut import Cut
from throttle.publish import Published

log = structlog.get_logger()


class BatchSink:
    """The function given to ``foreachBatch``; publishing is passed in.

    ``begins_live`` says whether to expect live windows, one per batch, as long as
    nothing was published; ``live_tasks``, how many tasks read one. ``timings`` logs
    where the time of every batch went. ``batches`` counts what was published.
    ``error`` keeps what stopped it, in its own words: through Spark it comes back
    wrapped in three stack traces.
    """

    def __init__(
        self,
        window_ms: int,
        publish: Callable[[Batch, int], Published | None],
        begins_live: bool = True,
        timings: bool = False,
        live_tasks: int = 1,
    ) -> None:
        self._window_ms = window_ms
        self._timings = timings
        self._publish = publish
        self._conflate = create_conflate(window_ms, live_tasks)
        self._reported = -1
        self._off_by = 0
        self.begins_live = begins_live
        self._end: Cut | None = None
        self._ended_s = time.monotonic()
        self.batches = 0
        self.error: Exception | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        try:
            self._run(frame, batch_id)
            self.batches += 1
        except Exception as error:
            self.error = error
            raise

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        began = time.time()
        conflated = self._conflate(frame, self._expects_live(began * 1000))
        planned = time.time()
        table = conflated.toArrow()
        collected = time.time()
        with no_collection():
            batch = assemble(table, self._window_ms)
        published = self._publish(batch, batch_id)
        ended = time.time()
        if published is None:
            return
        self._end, self._ended_s = batch.end, time.monotonic()
        self._say(published)
        if not self._timings:
            return
        log.debug(
            "batch",
            batch=batch_id,
            window=batch.end.end_ms,
            windows=published.windows,
            rows=published.rows,
            stale=published.stale,
            offset=published.offset,
            began_ms=round(began * 1000 - batch.end.end_ms, 1),
            plan_ms=round((planned - began) * 1000, 1),
            compute_ms=round((collected - planned) * 1000, 1),
            publish_ms=round((ended - collected) * 1000, 1),
            lag_ms=round(ended * 1000 - batch.end.end_ms, 1),
        )

    def _expects_live(self, now_ms: float) -> bool:
        """Guess whether the batch is one window; wrong, it only takes longer."""
        if self._end is None:
            return self.begins_live
        return now_ms - self._end.end_ms < 2 * self._window_ms

    def _say(self, published: Published) -> None:
        if published.windows > 1:
            log.info("caught up", windows=published.windows, offset=published.offset)
        if published.off_by != self._off_by:
            self._off_by = published.off_by
            log.error(
                "the ledger does not balance, see `tickthrottle ledger`",
                off_by=published.off_by,
            )

    def newest(self) -> tuple[Cut, float]:
        """Return the cut published last, and when by the monotonic clock.

        Before there was any: a cut of nothing, and when the sink was made.
        """
        return self._end or Cut(0, (), ()), self._ended_s

    def report_progress(self, query: StreamingQuery) -> None:
        """Log where Spark spent the last finished batch, once per batch."""
        if not self._timings:
            return
        progress = query.lastProgress
        if progress is None or progress.batchId == self._reported:
            return
        self._reported = progress.batchId
        log.debug("progress", batch=progress.batchId, **progress.durationMs)


def discard(batch: Batch, batch_id: int) -> None:
    """Publish nothing: what warming up does with its batches."""
