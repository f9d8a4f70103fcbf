"""The trade log as an independent reader finds it: all entries, by the plainest means.

What a test compares with must not come from what it tests: nothing of the product's
readers is used here.
"""

from collections.abc import Iterator
from typing import NamedTuple

import redis
from confluent_kafka import Consumer, KafkaError, TopicPartition


class Logged(NamedTuple):
    """One entry of the log."""

    partition: int
    position: int
    append_ms: int
    payload: bytes


def logged_in_redis(client: redis.Redis, namespace: str = "tt") -> list[Logged]:
    """Return every entry of a log in Redis; a position is made as documented."""
    entries = []
    for key in client.scan_iter(f"{namespace}:log:*", _type="stream"):
        partition = int(key.rsplit(b":", 1)[1])
        for entry_id, fields in client.xrange(key):
            ms, number = map(int, entry_id.split(b"-"))
            payload = fields.get(b"trade", b"")
            entries.append(Logged(partition, ms << 21 | number, ms, payload))
    return entries


def logged_in_kafka(servers: str, topic: str) -> list[Logged]:
    """Return every entry of a topic that is committed; a position is an offset."""
    return list(_read_topic(servers, topic))


def _read_topic(servers: str, topic: str) -> Iterator[Logged]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "test",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    try:
        known = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in known])
        left = set(known)
        while left:
            for message in consumer.consume(10_000, timeout=0.05):
                error = message.error()
                if error is None:
                    yield Logged(
                        message.partition() or 0,
                        message.offset() or 0,
                        message.timestamp()[1],
                        message.value() or b"",
                    )
                elif error.code() == KafkaError._PARTITION_EOF:
                    left.discard(message.partition() or 0)
    finally:
        consumer.close()
