"""Topics to test with, and what is in them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from secrets import token_hex

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from ingest.kafka_address import KafkaTopic


def make_topic(servers: str, partitions: int = 1, **config: str) -> KafkaTopic:
    """Create a topic of a new name; ``config`` has ``_`` in place of dots."""
    name = f"trades-{token_hex(4)}"
    named = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    new = NewTopic(name, partitions, 1, config=named)
    admin.create_topics([new])[name].result(timeout=10)
    return KafkaTopic(servers, name)


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
