"""What Spark calls with every batch: conflate and join, assemble, publish."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import structlog
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.instrument_table.known_instruments import Instruments
from throttle.contract.cut import Cut
from throttle.publish.publisher import PublishOutcome, StreamLost
from throttle.spark.idle_collector import IdleCollector
from throttle.spark.published_batch import PublishedBatch
from throttle.telemetry.batch_report import BatchReport
from throttle.window.batch import Abandoned, Batch, assemble
from throttle.window.conflate import create_conflate
from throttle.window.instrument_columns import NO_INSTRUMENTS, InstrumentColumns
from tickthrottle_client.gc_pause import no_collection

log = structlog.get_logger()

# How Java says that the thread that waits was told to end.
_INTERRUPTIONS = frozenset(
    {
        "java.lang.InterruptedException",
        "java.io.InterruptedIOException",
        "java.nio.channels.ClosedByInterruptException",
    }
)

MOST_UNGROUPED = 200_000
"""Rows of a backlog that are not grouped by Spark: they have some 40 MB.

Its tasks have combined them: an instrument has one in a window and partition.
"""

# A batch leaves little behind.
_COLLECT_EVERY_S = 120.0


class SparkFailed(RuntimeError):
    """What Spark's Java says of a failure, without its stack traces."""


class InstrumentFrame:
    """The newest instrument table, made once: its columns, and a broadcast frame."""

    def __init__(self) -> None:
        self._columns = NO_INSTRUMENTS
        self._frame: DataFrame | None = None

    def of(
        self, spark: SparkSession, instruments: Instruments
    ) -> tuple[InstrumentColumns, DataFrame | None]:
        """Return the columns of a table, and the frame; none of one of version 0."""
        if instruments is not self._columns.instruments:
            self._columns, self._frame = InstrumentColumns(instruments), None
            if instruments.version:
                frame = spark.createDataFrame(self._columns.places)
                self._frame = F.broadcast(frame)
        return self._columns, self._frame


def release_broadcasts(joined: DataFrame) -> None:
    """Give back what was broadcast for a frame, which cannot be collected again.

    Spark would keep a copy of the table for each batch, 2 MB for three thousand
    instruments, until Java has looked through its whole heap. No public call gives it
    back: it is looked up in the plan that was run.
    """
    plan = joined._jdf.queryExecution().executedPlan()
    for node in nodes_named(plan, "BroadcastExchangeExec"):
        node.executeBroadcast().destroy()


def nodes_named(plan: Any, name: str) -> Iterator[Any]:
    """Yield the nodes of a physical plan with a class's name, none below another."""
    plans = [plan]
    while plans:
        node = plans.pop()
        if node.getClass().getSimpleName() == name:
            yield node
            continue
        children = node.children()
        plans += [children.apply(number) for number in range(children.size())]


class BatchSink:
    """A ``StreamSink`` (``query.py``); publishing is passed in.

    What the task of a window has published is reported only.

    ``begins_live`` says whether to expect live windows, one per batch, as long as
    nothing was published, ``max_windows`` how many a batch has at most. ``report_to``
    is called after every publish. The batch is joined with the instrument table that
    ``newest_instruments`` returns at its begin. ``batches`` counts what was published.
    """

    def __init__(
        self,
        window_ms: int,
        publish: Callable[[Batch, int], PublishOutcome | None],
        begins_live: bool = True,
        report_to: Callable[[BatchReport], None] | None = None,
        newest_instruments: Callable[[], Instruments] = Instruments,
        max_windows: int = 30,
    ) -> None:
        self._window_ms = window_ms
        self._max_windows = max_windows
        self._report_to = report_to
        self._publish = publish
        self._conflate = create_conflate(window_ms)
        self._newest_instruments = newest_instruments
        self._instrument_frame = InstrumentFrame()
        self._collector = IdleCollector(_COLLECT_EVERY_S)
        self._off_by = 0
        self.begins_live = begins_live
        self._end: Cut | None = None
        self._rows_per_window = 0.0
        self._ended_s = time.monotonic()
        self.batches = 0
        self.is_open = False
        self.error: Exception | None = None

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        self.is_open = True
        try:
            self._run(frame, batch_id)
            self.batches += 1
        except Abandoned:
            # Whoever ended it or took over knows, and nobody waits for this batch.
            log.debug("batch given up", batch=batch_id)
        except StreamLost as error:
            # Whoever leads looks, and begins anew; raised through Spark it would be
            # pages of stack traces. What Spark notes as done is this run's alone.
            self.error = error
        except Py4JJavaError as error:
            kind, said = _told_by_java(error)
            if kind in _INTERRUPTIONS:
                # Spark ends the query; the next start goes on from the stored cut.
                log.debug("batch given up", batch=batch_id)
                return
            # Spark looks for interruptions in the text of an error, by a pattern that
            # overflows the stack of its thread if that text has stack traces in it.
            self.error = SparkFailed(said)
            raise self.error from None
        except Exception as error:
            self.error = error
            raise
        finally:
            self.is_open = False

    def _run(self, frame: DataFrame, batch_id: int) -> None:
        began = time.time()
        # The window is open: a change from now on counts from the next batch on.
        newest = self._newest_instruments()
        instruments, joined = self._instrument_frame.of(frame.sparkSession, newest)
        few = self._expects_few(began * 1000, len(newest))
        conflated = self._conflate(frame, few, joined)
        planned = time.time()
        table = conflated.toArrow()
        collected = time.time()
        by_task = PublishedBatch.of_rows(table)
        published: PublishOutcome | None
        if by_task is not None:
            batch, published = by_task.batch, by_task.outcome
            assembled, ended = by_task.assembled_s, by_task.published_s
        else:
            with no_collection():
                batch = assemble(table, self._window_ms, instruments)
            assembled = time.time()
            published = self._publish(batch, batch_id)
            ended = time.time()
        if joined is not None:
            release_broadcasts(conflated)
        if published is None:
            return
        self._end, self._ended_s = batch.end, time.monotonic()
        rows = len(table) if by_task is None else published.rows
        self._rows_per_window = rows / len(batch.windows)
        self._say(published, batch_id)
        if self._report_to is not None:
            boundary = batch.end.end_ms / 1000
            read = max(batch.read_ms / 1000, boundary)
            stages_s = {
                # A live window is planned while it is open: nobody waits for that.
                "plan": planned - began,
                "read": read - max(planned, boundary),
                "assemble": assembled - (read if by_task else collected),
                "publish": ended - assembled,
            }
            if by_task is None:
                stages_s["collect"] = collected - read
            self._report_to(BatchReport(batch_id, batch, published, ended, stages_s))
        if published.windows == 1:
            # The next one has just opened.
            self._collector.idle(frame.sparkSession)

    def _expects_few(self, now_ms: float, instruments: int) -> bool:
        """Guess whether the batch is one window, or has as few rows as before.

        Before there was any, a window has a row of each instrument of the table. Wrong,
        it takes longer and more memory, and the same is published.
        """
        windows: float = self._max_windows
        if self._end is not None:
            due = (now_ms - self._end.end_ms) / self._window_ms
            if due < 2:
                return True
            windows = min(due, windows)
        elif self.begins_live or not instruments:
            return self.begins_live
        return windows * (self._rows_per_window or instruments) <= MOST_UNGROUPED

    def _say(self, published: PublishOutcome, batch_id: int) -> None:
        if published.windows > 1:
            log.info(
                "caught up",
                batch=batch_id,
                windows=published.windows,
                offset=published.offset,
            )
        if published.off_by != self._off_by:
            self._off_by = published.off_by
            log.error(
                "the ledger does not balance, see `tickthrottle ledger`",
                batch=batch_id,
                off_by=published.off_by,
            )

    def newest(self) -> tuple[Cut, float]:
        """Return the newest cut and when it was published, by the monotonic clock.

        Before there was any: a cut of nothing, and when the sink was made.
        """
        return self._end or Cut(0, (), ()), self._ended_s


def _told_by_java(error: Py4JJavaError) -> tuple[str, str]:
    """Return the class of an error of Java's, and what it says."""
    try:
        thrown = error.java_exception
        return thrown.getClass().getName(), thrown.toString()
    except (Py4JError, OSError) as gone:
        return "", f"Spark's JVM has ended: {gone}"


def discard(batch: Batch, batch_id: int) -> None:
    """Publish nothing: what warming up does with its batches."""
    if batch.groups is not None:
        batch.groups.groups()
