"""The throttle: source | conflate | publish, under a lease."""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.instrument_table.known_instruments import Instruments
from ingest.instrument_table.open_instrument_store import open_instrument_store
from ingest.process.prometheus import exposed
from ingest.process.service_manager import tell_ready
from ingest.redis_keys import Keys
from throttle.leadership import Candidate, JobRefused
from throttle.lease.lease import Fenced, Keeper
from throttle.lease.retry import create_client
from throttle.publish.publisher import ReadElsewhere, StreamLost
from throttle.settings import ThrottleSettings
from throttle.spark.java import find_java
from throttle.spark.options import (
    SourceOptions,
    made_up_windows,
    publishing_options,
)
from throttle.spark.query import check_query, failures_as, start_stream, stop_query
from throttle.spark.scratch import scratch_folder
from throttle.spark.session import running_spark
from throttle.spark.sink import MOST_UNGROUPED, BatchSink, discard
from throttle.spark.source import FORMAT
from throttle.spark.warmup import made_up_instruments
from throttle.telemetry.batch_report import BatchReport, BatchReporter, StageWriter
from throttle.telemetry.metrics import ThrottleMetrics
from throttle.watch.instrument_watch import FIRST_PATIENCE_S, InstrumentWatch
from throttle.watch.log_watch import LogWatch
from throttle.window.decoder import find_decoder

log = structlog.get_logger()

WARMUP_WINDOWS = 3
"""Made-up windows that Spark processes before the first real one."""

# A cluster without a free core makes a job wait and says nothing.
_IDLE_S = 45.0


class ThrottleFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


def run_throttle(settings: ThrottleSettings, stop: threading.Event) -> None:
    """Run the job until ``stop`` is set. Raises ThrottleFailed.

    While Redis is away the job waits; when the stream was emptied or rolled back it
    starts again from what the log holds; when another job of its name has taken over
    it ends. As a standby it waits, warm, until the running job has ended.
    """
    registry = CollectorRegistry()
    metrics = ThrottleMetrics(registry)
    with (
        failures_as(ThrottleFailed, settings, stop, (JobRefused,)),
        exposed(settings, registry),
        scratch_folder() as scratch,
        scratch_folder(settings.state_dir / "checkpoints") as checkpoints,
    ):
        try:
            _run(settings, stop, scratch, checkpoints, metrics)
        except Fenced:
            metrics.fenced()
            raise


def _run(
    settings: ThrottleSettings,
    stop: threading.Event,
    scratch: Path,
    checkpoints: Path,
    metrics: ThrottleMetrics,
) -> None:
    # It is called in Spark's workers, but a name that is wrong is told here and now.
    find_decoder(settings.decoder, settings.schema_registry_url)
    client = create_client(settings.redis_url)
    candidate = Candidate(client, settings, stop, metrics=metrics)
    candidate.check_rights()
    info = candidate.open_log()
    java = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java.home))
    with (
        candidate.candidacy,
        InstrumentWatch(partial(open_instrument_store, settings)) as watch,
        running_spark(settings, java, scratch) as spark,
    ):
        candidate.check_free()
        warm_up(spark, settings, publishing_options(settings, info), scratch, stop)
        watch.newest(FIRST_PATIENCE_S)
        # As a standby too: whoever waits for it may start what depends on it.
        tell_ready()
        for number in itertools.count():
            if stop.is_set():
                return
            checkpoint = checkpoints / str(number)
            is_lost = _lead(
                spark, settings, candidate, checkpoint, stop, metrics, watch.newest
            )
            candidate = Candidate(client, settings, stop, is_lost, metrics)


def _lead(
    spark: SparkSession,
    settings: ThrottleSettings,
    candidate: Candidate,
    checkpoint: Path,
    stop: threading.Event,
    metrics: ThrottleMetrics,
    newest_instruments: Callable[[], Instruments],
) -> bool:
    """Take the lease and publish under it; return whether the stream was lost.

    The query is started before the lease is taken: its source waits for it.
    """
    info = candidate.open_log()
    stages = StageWriter(
        settings.redis_url, Keys(settings.namespace).stages(settings.job)
    )
    reporter = BatchReporter(metrics, stages.write)

    def report(batch: BatchReport) -> None:
        candidate.candidacy.close()
        reporter.published(batch)

    sink = BatchSink(
        settings.window_ms,
        candidate.publish,
        begins_live=False,
        report_to=report,
        newest_instruments=newest_instruments,
        max_windows=settings.max_windows_per_batch,
    )
    options = publishing_options(settings, info, candidate.lease.owner)
    query = start_query(spark, options, sink, checkpoint)
    try:
        taken = candidate.take(info, partial(check_query, query, sink, ThrottleFailed))
        if taken is None:
            return False
        grant, took_over = taken
        with (
            stages,
            candidate.keeper(grant.term) as keeper,
            candidate.watch(info, sink.newest) as watch,
            metrics.leading(),
        ):
            log.info("ready", log=info.log_id, term=grant.term, took_over=took_over)
            try:
                _wait(query, sink, keeper, watch, stop, reporter)
            finally:
                # Tasks of an open batch end by themselves without the lease.
                keeper.close()
                stop_query(query, sink)
        return False
    except StreamLost as error:
        log.warning(str(error))
        metrics.refused(error.cause)
        return not isinstance(error, ReadElsewhere)
    finally:
        stop_query(query, sink)


def warm_up(
    spark: SparkSession,
    settings: ThrottleSettings,
    options: SourceOptions,
    scratch: Path,
    stop: threading.Event,
    windows: int = WARMUP_WINDOWS,
) -> None:
    """Run made-up windows through everything but the publish. Raises ThrottleFailed.

    First live ones, one by one, then a batch as after an outage: its plan is its own.
    """
    live, backlog = windows, 1
    log.info("warming up", windows=live)
    # With a table, too: the join has code of its own.
    instruments = made_up_instruments()
    sink = BatchSink(
        settings.window_ms,
        discard,
        newest_instruments=lambda: instruments,
        # So the backlog is one of many rows, which Spark groups.
        max_windows=MOST_UNGROUPED,
    )
    options = made_up_windows(options, live, backlog)
    query = start_query(spark, options, sink, scratch / "warmup")
    began, is_idle = time.monotonic(), False
    while sink.batches < live + backlog and not stop.is_set():
        check_query(query, sink, ThrottleFailed)
        if not (sink.batches or is_idle) and time.monotonic() - began > _IDLE_S:
            is_idle = True
            log.warning("spark has run no task yet", master=settings.spark_master)
        sink.begins_live = sink.batches < live
        time.sleep(0.05)
    query.stop()


def start_query(
    spark: SparkSession, options: SourceOptions, sink: BatchSink, checkpoint: Path
) -> StreamingQuery:
    """Start the streaming query: source | sink, the sink conflates and publishes."""
    stream = spark.readStream.format(FORMAT).options(**options.to_spark())
    # On this machine: only the driver reads it, wherever the tasks run.
    return start_stream(stream.load(), sink, checkpoint.resolve().as_uri())


def _wait(
    query: StreamingQuery,
    sink: BatchSink,
    keeper: Keeper,
    watch: LogWatch,
    stop: threading.Event,
    reporter: BatchReporter,
) -> None:
    # Not stop.wait: a signal handler that sets the event could find its lock taken.
    while not stop.is_set():
        time.sleep(0.1)
        if keeper.is_fenced:
            raise Fenced("fenced: another job of this name has taken over")
        if watch.error is not None:
            raise watch.error
        check_query(query, sink, ThrottleFailed)
        reporter.look(query)
