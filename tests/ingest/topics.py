"""Topics to test with, and what is in them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from ingest.kafka.address import KafkaTopic
from tests import kafka
from tests.kafka_broker.broker import Broker


def make_topic(broker: Broker, partitions: int = 1, **config: str) -> KafkaTopic:
    """Create a topic that no other test has, and say how to reach it."""
    return KafkaTopic(broker.servers, kafka.make_topic(broker, partitions, **config))


def logged(topic: KafkaTopic, partitions: int) -> list[list[Message]]:
    """Every entry of a topic, partition by partition, in order."""
    found: list[list[Message]] = [[] for _ in range(partitions)]
    options = topic.client_options(
        {
            "group.id": "test",
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer = Consumer(options)
    consumer.assign([TopicPartition(topic.topic, p, 0) for p in range(partitions)])
    ended: set[int] = set()
    deadline = time.monotonic() + 30
    while len(ended) < partitions:
        assert time.monotonic() < deadline, "the topic cannot be read"
        for message in consumer.consume(10_000, 0.2):
            error, partition = message.error(), message.partition()
            if error is None:
                found[partition].append(message)
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                ended.add(partition)
    consumer.close()
    return found


def payloads(topic: KafkaTopic, partitions: int) -> list[bytes]:
    """Every payload of a topic, partition after partition."""
    return [m.value() or b"" for each in logged(topic, partitions) for m in each]


@contextmanager
def mock_cluster() -> Iterator[str]:
    """Yield the address of librdkafka's make-believe broker: four partitions a topic.

    It knows no topic ids, no limits and no access rights.
    """
    home = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    brokers = home.list_topics(timeout=5).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    home.close()
