"""A streaming query of Spark's and the sink that gets its batches, for every job."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Literal, Protocol

import redis
import structlog
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from ingest.process.prometheus import MetricsUnavailable
from ingest.process.redact import server_address
from ingest.process.redis_fault import in_words
from ingest.tradelog.contract import LogUnusable
from throttle.lease.lease import Fenced
from throttle.lease.retry import Stopped
from throttle.publish.publisher import StreamLost
from throttle.settings import SparkSettings
from throttle.spark.java import NoJava
from throttle.spark.scratch import NoFolder
from throttle.spark.start.java_process import NoSpark
from throttle.window.decoder import NoDecoder

log = structlog.get_logger()

OutputMode = Literal["append", "update"]

# How long an open batch may take to end before Spark is made to end it.
_ENDED_WITHIN_S = 2.0

_LASTING: tuple[type[Exception], ...] = (
    NoFolder,
    NoJava,
    NoDecoder,
    LogUnusable,
    MetricsUnavailable,
    Fenced,
)


class StreamSink(Protocol):
    """What Spark calls with every batch, maybe again for the same batch.

    ``error`` keeps what stopped it, in its own words: through Spark it comes back
    wrapped in three stack traces. ``is_open`` says that a batch is being read or
    published.
    """

    error: Exception | None
    is_open: bool

    def __call__(self, frame: DataFrame, batch_id: int) -> None: ...


def start_stream(
    rows: DataFrame,
    sink: StreamSink,
    checkpoint: str,
    mode: OutputMode = "append",
    name: str | None = None,
) -> StreamingQuery:
    """Start a streaming query; its checkpoint, an address, says where it goes on."""
    # Without a trigger interval: sources wait for the end of a window themselves, by
    # the clock of the log's server, and a backlog is worked off without pauses.
    writer = rows.writeStream.outputMode(mode).foreachBatch(sink)
    if name is not None:
        writer = writer.queryName(name)
    return writer.option("checkpointLocation", checkpoint).start()


def stop_query(query: StreamingQuery, sink: StreamSink) -> None:
    """Stop a query once its open batch has ended, or after two seconds.

    In the middle of a batch Spark ends with pages of errors. The next start goes on
    from the cut that was published last, or that the checkpoint holds.
    """
    until_s = time.monotonic() + _ENDED_WITHIN_S
    while sink.is_open and query.isActive and time.monotonic() < until_s:
        time.sleep(0.02)
    with suppress(Py4JError, PySparkException, OSError):
        query.stop()


def check_query(
    query: StreamingQuery, sink: StreamSink, failed: Callable[[str], Exception]
) -> None:
    """Raise what has ended a query, as its sink says it, or else as ``failed``."""
    if query.isActive and not isinstance(sink.error, StreamLost):
        return
    if isinstance(sink.error, (StreamLost, Fenced, Stopped, redis.RedisError)):
        raise sink.error
    cause = sink.error or query.exception() or "the query stopped by itself"
    raise failed(first_line(cause))


@contextmanager
def failures_as(
    failed: type[RuntimeError],
    settings: SparkSettings,
    stop: threading.Event,
    lasting: tuple[type[Exception], ...] = (),
) -> Iterator[None]:
    """Raise what ends a job as ``failed``, in a sentence; nothing once told to stop.

    ``lasting`` are errors of the job's own that say what an operator has to do.
    """
    try:
        with suppress(Stopped):
            yield
    except (failed, NoSpark, PySparkException, Py4JError, ConnectionError) as error:
        # A terminal's signal, or a runner's, ends the JVM as well as this process.
        if not stop.is_set():
            is_gone = isinstance(error, (Py4JError, ConnectionError))
            prefix = "Spark's JVM has ended: " if is_gone else ""
            raise failed(prefix + first_line(error)) from error
        log.info("told to stop, and Spark has ended", error=first_line(error))
    except redis.RedisError as error:
        address = server_address(settings.redis_url)
        raise failed(f"redis_url {address}: {in_words(error)}") from error
    except _LASTING + lasting as error:
        raise failed(str(error)) from error


def first_line(error: object) -> str:
    """Return what an error says, without the stack traces that Spark's goes on with."""
    return str(error).strip().split("\n", 1)[0]
