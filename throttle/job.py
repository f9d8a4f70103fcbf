"""The throttle: source | conflate | publish, under a lease."""

import itertools
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import redis
import structlog
from prometheus_client import CollectorRegistry
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.issue_table.known_issues import Issues
from ingest.issue_table.open_issue_store import open_issue_store
from ingest.process.prometheus import MetricsUnavailable, exposed
from ingest.process.redact import server_address
from ingest.process.redis_fault import in_words
from ingest.process.service_manager import tell_ready
from ingest.tradelog.contract import LogUnusable
from throttle.contract.redis_keys import Keys
from throttle.leadership import Candidate, JobRefused
from throttle.lease.lease import Fenced, Keeper
from throttle.lease.retry import Stopped, create_client
from throttle.publish.publisher import StreamLost
from throttle.settings import ThrottleSettings
from throttle.spark.java import NoJava, find_java
from throttle.spark.options import SourceOptions, made_up_windows, source_options
from throttle.spark.scratch import NoFolder, scratch_folder
from throttle.spark.session import create_session
from throttle.spark.sink import BatchSink, discard
from throttle.spark.source import FORMAT
from throttle.spark.start.java_process import NoSpark
from throttle.spark.warmup import made_up_issues
from throttle.telemetry.batch_report import BatchReporter, StageWriter
from throttle.telemetry.metrics import ThrottleMetrics
from throttle.watch.issue_watch import FIRST_PATIENCE_S, IssueWatch
from throttle.watch.log_watch import LogWatch
from throttle.window.decoder import NoDecoder, find_decoder

log = structlog.get_logger()

_LASTING = (NoFolder, NoJava, NoDecoder, LogUnusable, JobRefused)

WARMUP_WINDOWS = 3
"""Made-up windows that Spark processes before the first real one."""

# How long an open batch may take to be given up before Spark is made to end it.
_GIVEN_UP_WITHIN_S = 2.0

# A cluster without a free core makes a job wait and says nothing.
_IDLE_S = 45.0


class ThrottleFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


_OF_SPARK = (NoSpark, ThrottleFailed, PySparkException, Py4JError, ConnectionError)


def run_throttle(settings: ThrottleSettings, stop: threading.Event) -> None:
    """Run the job until ``stop`` is set. Raises ThrottleFailed.

    While Redis is away the job waits; when the stream was emptied or rolled back it
    starts again from what the log holds; when another job of its name has taken over
    it ends. As a standby it waits, warm, until the running job has ended.
    """
    registry = CollectorRegistry()
    metrics = ThrottleMetrics(registry)
    try:
        with (
            suppress(Stopped),
            exposed(settings, registry),
            scratch_folder() as scratch,
            scratch_folder(settings.state_dir / "checkpoints") as checkpoints,
        ):
            _run(settings, stop, scratch, checkpoints, metrics)
    except _OF_SPARK as error:
        # A terminal's signal, or a runner's, ends the JVM as well as this process.
        if not stop.is_set():
            raise _in_words(error) from error
        log.info("told to stop, and Spark has ended", error=first_line(error))
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise ThrottleFailed(f"redis_url {address}: {in_words(error)}") from error
    except Fenced as error:
        metrics.fenced()
        raise ThrottleFailed(str(error)) from error
    except (*_LASTING, MetricsUnavailable) as error:
        raise ThrottleFailed(str(error)) from error


def _run(
    settings: ThrottleSettings,
    stop: threading.Event,
    scratch: Path,
    checkpoints: Path,
    metrics: ThrottleMetrics,
) -> None:
    # It is called in Spark's workers, but a name that is wrong is told here and now.
    find_decoder(settings.decoder)
    client = create_client(settings.redis_url)
    candidate = Candidate(client, settings, stop, metrics=metrics)
    candidate.check_rights()
    info = candidate.open_log()
    java = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java.home))
    with candidate.candidacy, IssueWatch(partial(open_issue_store, settings)) as watch:
        spark = create_session(settings, java, scratch)
        try:
            candidate.check_free()
            warm_up(spark, settings, source_options(settings, info), scratch, stop)
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
        finally:
            # The JVM may be gone already, it gets a terminal's signals too.
            with suppress(Py4JError, PySparkException, OSError):
                spark.stop()


def _lead(
    spark: SparkSession,
    settings: ThrottleSettings,
    candidate: Candidate,
    checkpoint: Path,
    stop: threading.Event,
    metrics: ThrottleMetrics,
    newest_issues: Callable[[], Issues],
) -> bool:
    """Take the lease and publish under it; return whether the stream was lost.

    The query is started before the lease is taken: its source waits for it.
    """
    info = candidate.open_log()
    stages = StageWriter(
        settings.redis_url, Keys(settings.namespace).stages(settings.job)
    )
    reporter = BatchReporter(metrics, stages.write)
    sink = BatchSink(
        settings.window_ms,
        candidate.publish,
        begins_live=False,
        report_to=reporter.published,
        newest_issues=newest_issues,
        max_windows=settings.max_windows_per_batch,
    )
    options = source_options(settings, info, candidate.lease.owner)
    query = start_query(spark, options, sink, checkpoint)
    try:
        taken = candidate.take(info, partial(_check, query, sink))
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
        return True
    finally:
        stop_query(query, sink)


def stop_query(query: StreamingQuery, sink: BatchSink) -> None:
    """Stop a query whose lease was given back, once its open batch has ended.

    A batch that does not end within two seconds is ended by Spark.
    """
    until_s = time.monotonic() + _GIVEN_UP_WITHIN_S
    while sink.is_open and query.isActive and time.monotonic() < until_s:
        time.sleep(0.02)
    # Any moment is a good one to end: the next start goes on from the cut that was
    # stored with the last publish.
    with suppress(Py4JError, PySparkException, OSError):
        query.stop()


def warm_up(
    spark: SparkSession,
    settings: ThrottleSettings,
    options: SourceOptions,
    scratch: Path,
    stop: threading.Event,
    windows: int = WARMUP_WINDOWS,
) -> None:
    """Run made-up windows through everything but the publish.

    First live ones, one by one, then a batch as after an outage: it has a plan of its
    own. Raises ThrottleFailed.
    """
    live, backlog = windows, 1
    log.info("warming up", windows=live)
    # With a table, too: the join has code of its own.
    issues = made_up_issues()
    sink = BatchSink(settings.window_ms, discard, newest_issues=lambda: issues)
    options = made_up_windows(options, live, backlog)
    query = start_query(spark, options, sink, scratch / "warmup")
    began, is_idle = time.monotonic(), False
    while sink.batches < live + backlog and not stop.is_set():
        _check(query, sink)
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
    # No trigger interval: the source itself waits for the window's end, by the
    # clock of the log's server, and a backlog is worked off without pauses.
    return (
        spark.readStream.format(FORMAT)
        .options(**options.to_spark())
        .load()
        .writeStream.foreachBatch(sink)
        # On this machine: only the driver reads it, wherever the tasks run.
        .option("checkpointLocation", checkpoint.resolve().as_uri())
        .start()
    )


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
        _check(query, sink)
        reporter.look(query)


def _check(query: StreamingQuery, sink: BatchSink) -> None:
    if query.isActive and not isinstance(sink.error, StreamLost):
        return
    # In its own words: through Spark an error comes back in three stack traces.
    if isinstance(sink.error, (StreamLost, Fenced, Stopped, redis.RedisError)):
        raise sink.error
    cause = sink.error or query.exception() or "the query stopped by itself"
    raise ThrottleFailed(first_line(cause))


def _in_words(error: Exception) -> ThrottleFailed:
    if isinstance(error, (Py4JError, ConnectionError)):
        return ThrottleFailed(f"Spark's JVM has ended: {first_line(error)}")
    return ThrottleFailed(first_line(error))


def first_line(error: object) -> str:
    """Return what an error says, without the stack traces that Spark's goes on with."""
    return str(error).strip().split("\n", 1)[0]
