"""The trade log a job reads: which one it is, and what reads it."""

from typing import TYPE_CHECKING

import redis

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogInfo, LogReader
from ingest.tradelog.redis_log_reader import RedisLogReader
from ingest.tradelog.redis_log_reader import open_log as open_redis_log

if TYPE_CHECKING:
    # A task of Spark reads a log, too: it should not load what checks settings.
    from throttle.settings import SparkSettings


def open_log(client: redis.Redis, settings: "SparkSettings") -> LogInfo:
    """Return the log's identity; one of Redis is created on first use.

    Raises LogAway and LogUnusable, or redis.RedisError.
    """
    topic = settings.topic()
    if topic is None:
        return open_redis_log(client, settings.namespace, settings.partitions)
    # Loaded where it is needed only.
    from tickthrottle_client.kafka_client import open_topic

    return open_topic(topic)


def open_reader(
    client: redis.Redis, settings: "SparkSettings", info: LogInfo
) -> LogReader:
    """Return what reads the log, or those of its partitions the job is to read."""
    topic, only = settings.topic(), settings.only()
    if topic is None:
        return RedisLogReader(client, settings.namespace, info, only)
    return kafka_reader(topic, info, only, settings.kafka_margin_ms)


def kafka_reader(
    topic: KafkaTopic, info: LogInfo, only: tuple[int, ...], margin_ms: int
) -> LogReader:
    """Return what reads a topic of Kafka."""
    from ingest.kafka.kafka_log_reader import KafkaLogReader

    return KafkaLogReader(topic, info, only, margin_ms)
