"""The throttle: source | conflate | publish."""

import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import cast

import orjson
import redis
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from redis.backoff import ExponentialBackoff
from redis.retry import Retry

from ingest.log import LogInfo
from ingest.redis_log import (
    LogUnusable,
    RedisLogReader,
    open_log,
    server_address,
)
from throttle.cut import origin
from throttle.java import NoJava, find_java
from throttle.publish import Publisher
from throttle.scratch import scratch_folder
from throttle.session import create_session
from throttle.settings import ThrottleSettings
from throttle.sink import BatchSink, discard
from throttle.snapshot import Keys
from throttle.source import FORMAT, SourceOptions

log = structlog.get_logger()


class ThrottleFailed(RuntimeError):
    """The job cannot run or cannot go on; the message says why."""


def run_throttle(settings: ThrottleSettings, stop: threading.Event) -> None:
    """Run the job until ``stop`` is set. Raises ThrottleFailed."""
    try:
        with scratch_folder() as scratch:
            _run(settings, stop, scratch)
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise ThrottleFailed(f"redis_url {address}: {error}") from error
    except (NoJava, LogUnusable) as error:
        raise ThrottleFailed(str(error)) from error
    except PySparkException as error:
        raise ThrottleFailed(_first_line(error)) from error
    except (Py4JError, ConnectionError) as error:
        raise ThrottleFailed(f"Spark's JVM has ended: {_first_line(error)}") from error


def _run(settings: ThrottleSettings, stop: threading.Event, scratch: Path) -> None:
    client = _connect(settings.redis_url)
    info = open_log(client, settings.namespace, settings.partitions)
    options = _prepare(client, settings, info)
    java_home = find_java(settings.java_home, scratch)
    log.info("starting spark", java_home=str(java_home))
    spark = create_session(java_home, settings.spark_memory_mb, scratch)
    _warm_up(spark, settings, options, scratch, stop)
    sink = BatchSink(
        settings.window_ms,
        _publisher(client, settings).publish,
        timings=settings.log_level == "debug",
    )
    checkpoint = settings.state_dir / "checkpoints" / info.log_id / settings.job
    query = _start(spark, options, sink, checkpoint)
    log.info("ready", log=info.log_id, partitions=info.partitions)
    _wait(query, sink, stop)
    _stop(query, spark)


def _connect(redis_url: str) -> redis.Redis:
    return redis.Redis.from_url(
        redis_url,
        socket_timeout=5,
        socket_connect_timeout=5,
        retry=Retry(ExponentialBackoff(cap=1, base=0.05), retries=5),
    )


def _prepare(
    client: redis.Redis, settings: ThrottleSettings, info: LogInfo
) -> SourceOptions:
    """Say where the job starts; it stays said, whatever is killed before it ran."""
    keys = Keys(settings.namespace)
    known_window = client.hget(keys.meta, "window_ms")
    if known_window is not None and int(known_window) != settings.window_ms:
        raise ThrottleFailed(
            f"window_ms {settings.window_ms}: this stream has windows of "
            f"{int(known_window)} ms; use another namespace"
        )
    reader = RedisLogReader(client, settings.namespace, info)
    first = origin(
        reader.oldest_ms(), reader.clock_ms(), settings.window_ms, info.partitions
    )
    field = f"cut:{settings.job}"
    client.hsetnx(keys.meta, field, orjson.dumps(first.to_offset()).decode())
    initial = cast(bytes, client.hget(keys.meta, field))
    return SourceOptions(
        redis_url=settings.redis_url,
        namespace=settings.namespace,
        log_id=info.log_id,
        partitions=info.partitions,
        created_ms=info.created_ms,
        window_ms=settings.window_ms,
        max_windows=settings.max_windows_per_batch,
        max_ahead_ms=settings.max_ahead_ms,
        retention_ms=settings.log_retention_s * 1000,
        initial_offset=initial.decode(),
        synthetic_windows=0,
    )


def _publisher(client: redis.Redis, settings: ThrottleSettings) -> Publisher:
    return Publisher(
        client,
        Keys(settings.namespace),
        settings.job,
        settings.window_ms,
        settings.window_log,
        settings.dead_letters,
    )


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
    start = origin(None, options.created_ms, options.window_ms, options.partitions)
    made_up = replace(
        options,
        synthetic_windows=settings.warmup_windows,
        max_windows=1,
        initial_offset=orjson.dumps(start.to_offset()).decode(),
    )
    sink = BatchSink(settings.window_ms, discard)
    query = _start(spark, made_up, sink, scratch / "warmup")
    while sink.batches < settings.warmup_windows and not stop.is_set():
        _check(query, sink)
        time.sleep(0.05)
    query.stop()


def _start(
    spark: SparkSession, options: SourceOptions, sink: BatchSink, checkpoint: Path
) -> StreamingQuery:
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


def _wait(query: StreamingQuery, sink: BatchSink, stop: threading.Event) -> None:
    # Not stop.wait: a signal handler that sets the event could find its lock taken.
    while not stop.is_set():
        time.sleep(0.1)
        _check(query, sink)
        sink.report_progress(query)


def _check(query: StreamingQuery, sink: BatchSink) -> None:
    if not query.isActive:
        cause = sink.error or query.exception() or "the query stopped by itself"
        raise ThrottleFailed(_first_line(cause))


def _stop(query: StreamingQuery, spark: SparkSession) -> None:
    # Any moment is a good one to end: the next start continues from the checkpoint.
    # The JVM may be gone already, it gets a terminal's signals too.
    with suppress(Py4JError, PySparkException, OSError):
        query.stop()
        spark.stop()


def _first_line(error: object) -> str:
    # Spark's and Py4J's messages go on with stack traces.
    return str(error).strip().split("\n", 1)[0]
