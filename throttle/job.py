"""The throttle: source | conflate | publish, under a lease."""

import threading
import time
from contextlib import suppress
from pathlib import Path

import redis
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.redis_log import LogUnusable, server_address
from throttle.batch import Batch
from throttle.java import NoJava, find_java
from throttle.lease import Fenced, Keeper, Lease
from throttle.outage import Stopped, create_client, until_done
from throttle.publish import Published, StreamLost
from throttle.scratch import checkpoint_folder, scratch_folder
from throttle.seat import JobRefused, Seat
from throttle.session import create_session
from throttle.settings import ThrottleSettings
from throttle.sink import BatchSink, discard
from throttle.snapshot import Keys
from throttle.source import FORMAT, SourceOptions, made_up_windows, source_options

log = structlog.get_logger()


class ThrottleFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


def run_throttle(settings: ThrottleSettings, stop: threading.Event) -> None:
    """Run the job until ``stop`` is set. Raises ThrottleFailed.

    While Redis is away the job waits; when the stream was emptied or rolled back it
    starts again from what the log holds; when another job of its name has taken over
    it ends. As a standby it waits, warm, until the running job has ended.
    """
    try:
        with suppress(Stopped), scratch_folder() as scratch:
            _run(settings, stop, scratch)
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise ThrottleFailed(f"redis_url {address}: {error}") from error
    except (NoJava, LogUnusable, Fenced, JobRefused) as error:
        raise ThrottleFailed(str(error)) from error
    except PySparkException as error:
        raise ThrottleFailed(_first_line(error)) from error
    except (Py4JError, ConnectionError) as error:
        raise ThrottleFailed(f"Spark's JVM has ended: {_first_line(error)}") from error


def _run(settings: ThrottleSettings, stop: threading.Event, scratch: Path) -> None:
    client = create_client(settings.redis_url)
    lease = Lease(client, Keys(settings.namespace), settings.job, settings.lease_ms)
    seat = Seat(client, settings, lease, stop)
    info = seat.open_log()
    java_home = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java_home))
    spark = create_session(java_home, settings.spark_memory_mb, scratch)
    try:
        seat.check_free()
        _warm_up(spark, settings, source_options(settings, info), scratch, stop)
        while not stop.is_set():
            _lead(spark, settings, seat, lease, stop)
    finally:
        # The JVM may be gone already, it gets a terminal's signals too.
        with suppress(Py4JError, PySparkException, OSError):
            spark.stop()


def _lead(
    spark: SparkSession,
    settings: ThrottleSettings,
    seat: Seat,
    lease: Lease,
    stop: threading.Event,
) -> None:
    """Take the lease and publish under it, until told to stop or the stream is lost."""
    info, grant, took_over = seat.take()
    publisher = seat.publisher(grant.term)

    def publish(batch: Batch, batch_id: int) -> Published:
        return until_done(lambda: publisher.publish(batch, batch_id), stop)

    sink = BatchSink(
        settings.window_ms,
        publish,
        previous_end_ms=grant.cut.end_ms,
        timings=settings.log_level == "debug",
    )
    options = source_options(settings, info, grant.cut)
    checkpoint = checkpoint_folder(
        settings.state_dir, info.log_id, settings.job, grant.term
    )
    with Keeper(lease, grant.term, settings.lease_ms) as keeper:
        query = start_query(spark, options, sink, checkpoint)
        try:
            log.info("ready", log=info.log_id, term=grant.term, took_over=took_over)
            _wait(query, sink, keeper, stop)
        except StreamLost as error:
            log.warning(str(error), term=grant.term)
            seat.lost_stream = True
        finally:
            # Any moment is a good one to end: the next start goes on from the cut
            # that was stored with the last publish.
            with suppress(Py4JError, PySparkException, OSError):
                query.stop()


def _warm_up(
    spark: SparkSession,
    settings: ThrottleSettings,
    options: SourceOptions,
    scratch: Path,
    stop: threading.Event,
) -> None:
    """Run made-up windows through everything but the publish, one by one."""
    if not settings.warmup_windows:
        return
    log.info("warming up", windows=settings.warmup_windows)
    made_up = made_up_windows(options, settings.warmup_windows)
    sink = BatchSink(settings.window_ms, discard)
    query = start_query(spark, made_up, sink, scratch / "warmup")
    while sink.batches < settings.warmup_windows and not stop.is_set():
        _check(query, sink)
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
        .option("checkpointLocation", str(checkpoint))
        .start()
    )


def _wait(
    query: StreamingQuery, sink: BatchSink, keeper: Keeper, stop: threading.Event
) -> None:
    # Not stop.wait: a signal handler that sets the event could find its lock taken.
    while not stop.is_set():
        time.sleep(0.1)
        if keeper.is_fenced:
            raise Fenced("fenced: another job of this name has taken over")
        _check(query, sink)
        sink.report_progress(query)


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
