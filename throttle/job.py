"""The throttle: source | conflate | publish, under a lease."""

import itertools
import threading
import time
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

from ingest.exposition import MetricsUnavailable, exposed
from ingest.log import LogUnusable
from ingest.masking import server_address
from throttle.decoder import NoDecoder, find_decoder
from throttle.java import NoJava, find_java
from throttle.lease import Fenced, Keeper
from throttle.metrics import ThrottleMetrics
from throttle.outage import Stopped, create_client
from throttle.progress import Progress
from throttle.publish import StreamLost
from throttle.scratch import scratch_folder
from throttle.seat import JobRefused, Seat
from throttle.session import NoSpark, create_session
from throttle.settings import ThrottleSettings
from throttle.sink import BatchSink, discard
from throttle.snapshot import Keys
from throttle.source import FORMAT, SourceOptions, made_up_windows, source_options
from throttle.stages import StageLog
from throttle.watch import LogWatch

log = structlog.get_logger()

_LASTING = (NoJava, NoSpark, NoDecoder, LogUnusable, JobRefused)

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
    try:
        with (
            suppress(Stopped),
            exposed(settings, registry),
            scratch_folder() as scratch,
            scratch_folder(settings.state_dir / "checkpoints") as checkpoints,
        ):
            _run(settings, stop, scratch, checkpoints, metrics)
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise ThrottleFailed(f"redis_url {address}: {error}") from error
    except Fenced as error:
        metrics.fenced()
        raise ThrottleFailed(str(error)) from error
    except (*_LASTING, MetricsUnavailable) as error:
        raise ThrottleFailed(str(error)) from error
    except PySparkException as error:
        raise ThrottleFailed(_first_line(error)) from error
    except (Py4JError, ConnectionError) as error:
        raise ThrottleFailed(f"Spark's JVM has ended: {_first_line(error)}") from error


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
    seat = Seat(client, settings, stop, metrics=metrics)
    info = seat.open_log()
    java_home = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java_home))
    spark = create_session(settings, java_home, scratch)
    try:
        seat.check_free()
        _warm_up(spark, settings, source_options(settings, info), scratch, stop)
        for number in itertools.count():
            if stop.is_set():
                return
            checkpoint = checkpoints / str(number)
            is_lost = _lead(spark, settings, seat, checkpoint, stop, metrics)
            seat = Seat(client, settings, stop, is_lost, metrics)
    finally:
        # The JVM may be gone already, it gets a terminal's signals too.
        with suppress(Py4JError, PySparkException, OSError):
            spark.stop()


def _lead(
    spark: SparkSession,
    settings: ThrottleSettings,
    seat: Seat,
    checkpoint: Path,
    stop: threading.Event,
    metrics: ThrottleMetrics,
) -> bool:
    """Take the seat and publish from it; return whether the stream was lost.

    The query is started before the seat is taken: its source waits for it.
    """
    info = seat.open_log()
    stages = StageLog(settings.redis_url, Keys(settings.namespace).stages(settings.job))
    progress = Progress(metrics, stages.write)
    sink = BatchSink(
        settings.window_ms,
        seat.publish,
        begins_live=False,
        told=progress.published,
        live_tasks=settings.live_tasks,
    )
    options = source_options(settings, info, seat.lease.owner)
    query = start_query(spark, options, sink, checkpoint)
    try:
        taken = seat.take(info, partial(_check, query, sink))
        if taken is None:
            return False
        grant, took_over = taken
        with (
            stages,
            seat.keeper(grant.term) as keeper,
            seat.watch(info, sink.newest) as watch,
            metrics.leading(),
        ):
            log.info("ready", log=info.log_id, term=grant.term, took_over=took_over)
            try:
                _wait(query, sink, keeper, watch, stop, progress)
            finally:
                _stop(query)
        return False
    except StreamLost as error:
        log.warning(str(error))
        return True
    finally:
        _stop(query)


def _stop(query: StreamingQuery) -> None:
    # Any moment is a good one to end: the next start goes on from the cut that was
    # stored with the last publish.
    with suppress(Py4JError, PySparkException, OSError):
        query.stop()


def _warm_up(
    spark: SparkSession,
    settings: ThrottleSettings,
    options: SourceOptions,
    scratch: Path,
    stop: threading.Event,
) -> None:
    """Run made-up windows through everything but the publish.

    First live ones, one by one, then a few batches as after an outage: they have a
    plan of their own.
    """
    live, backlog = settings.warmup_windows, min(settings.warmup_windows, 3)
    if not live:
        return
    log.info("warming up", windows=live)
    sink = BatchSink(settings.window_ms, discard, live_tasks=settings.live_tasks)
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
    progress: Progress,
) -> None:
    # Not stop.wait: a signal handler that sets the event could find its lock taken.
    while not stop.is_set():
        time.sleep(0.1)
        if keeper.is_fenced:
            raise Fenced("fenced: another job of this name has taken over")
        if watch.error is not None:
            raise watch.error
        _check(query, sink)
        progress.look(query)


def _check(query: StreamingQuery, sink: BatchSink) -> None:
    if query.isActive:
        return
    # In its own words: through Spark an error comes back in three stack traces.
    if isinstance(sink.error, (StreamLost, Fenced, Stopped, redis.RedisError)):
        raise sink.error
    cause = sink.error or query.exception() or "the query stopped by itself"
    raise ThrottleFailed(_first_line(cause))


def _first_line(error: object) -> str:
    # Spark's and Py4J's messages go on with stack traces.
    return str(error).strip().split("\n", 1)[0]
