"""The sink in a streaming query whose Java fails, or is told to end, in a batch."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import eventually
from throttle.job import start_query
from throttle.publish.publisher import PublishOutcome
from throttle.settings import ThrottleSettings
from throttle.spark.options import made_up_windows, source_options
from throttle.spark.sink import BatchSink, SparkFailed
from throttle.window.batch import Batch

pytestmark = [pytest.mark.redis, pytest.mark.spark]

RunUntilEnded = Callable[[Callable[[], object]], tuple[BatchSink, StreamingQuery]]


@pytest.fixture
def run_until_ended(
    spark: SparkSession, client: redis.Redis, redis_url: str, tmp_path: Path
) -> RunUntilEnded:
    """Run a query of made-up windows that calls Java when it is to publish."""
    settings = ThrottleSettings(redis_url=redis_url, state_dir=tmp_path, partitions=2)
    info = open_log(client, settings.namespace, 2)
    options = made_up_windows(source_options(settings, info), 1)

    def run(call_java: Callable[[], object]) -> tuple[BatchSink, StreamingQuery]:
        def publish(batch: Batch, batch_id: int) -> PublishOutcome | None:
            call_java()
            return None

        sink = BatchSink(settings.window_ms, publish)
        query = start_query(spark, options, sink, tmp_path / "checkpoint")
        eventually(lambda: not (query.isActive or sink.is_open), 60)
        return sink, query

    return run


def test_a_batch_whose_thread_is_told_to_end_is_given_up(
    spark: SparkSession, run_until_ended: RunUntilEnded
) -> None:
    """Nobody is shown an error: its query ends for whoever ended it."""
    thread = spark._jvm.java.lang.Thread  # type: ignore[union-attr]

    def is_told_to_end() -> None:
        for query in spark.streams.active:
            query._jsq.stop()
        thread.currentThread().interrupt()
        thread.sleep(60_000)

    sink, query = run_until_ended(is_told_to_end)
    assert query.exception() is None
    assert sink.error is None
    assert sink.batches == 0


def test_a_failure_in_java_ends_the_query_in_a_sentence(
    spark: SparkSession, run_until_ended: RunUntilEnded
) -> None:
    """Spark looks through its text: with stack traces in it, that overflows."""
    jvm = spark._jvm

    def fails() -> None:
        jvm.java.util.Optional.empty().get()  # type: ignore[union-attr]

    sink, query = run_until_ended(fails)
    assert isinstance(sink.error, SparkFailed)
    assert str(sink.error).startswith("java.util.NoSuchElementException: ")
    assert "StackOverflowError" not in str(query.exception())
    assert "NoSuchElementException" in str(query.exception())
