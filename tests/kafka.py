"""Topics, trades and readers for tests that talk to a real Kafka broker."""

import itertools
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from tests.conftest import eventually
from tests.kafka_broker.broker import Broker

_numbers = itertools.count(1)


def options(broker: Broker, **more: Any) -> dict[str, Any]:
    """Return what a client needs to know; what it would print is left out."""
    return {"bootstrap.servers": broker.servers, "log_level": 0, **more}


def sasl_options(broker: Broker, password: str) -> dict[str, Any]:
    """Return the same for the listener with credentials."""
    return {
        "bootstrap.servers": broker.sasl_servers,
        "log_level": 0,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": broker.user,
        "sasl.password": password,
    }


def make_topic(broker: Broker, partitions: int = 1, **config: str) -> str:
    """Create a topic that no other test has; ``segment_ms`` means ``segment.ms``."""
    name = f"topic-{next(_numbers)}"
    dotted = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient(options(broker))
    created = admin.create_topics([NewTopic(name, partitions, 1, config=dotted)])
    created[name].result(30)
    places = {TopicPartition(name, p): OffsetSpec.earliest() for p in range(partitions)}

    def is_led() -> bool:
        try:
            for told in admin.list_offsets(places).values():
                told.result(30)
        except KafkaException:
            return False
        return True

    # A topic is there before its partitions have a leader that answers.
    eventually(is_led, 30)
    return name


def produce(
    broker: Broker, topic: str, values: Iterable[bytes], key: bytes | None = None
) -> None:
    """Append values to partition 0; every one of them is acknowledged afterwards."""
    refused: list[object] = []
    producer = Producer(options(broker, acks="all", **{"enable.idempotence": True}))
    for value in values:
        producer.produce(
            topic,
            value,
            key,
            partition=0,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert producer.flush(30) == 0
    assert refused == []


def bounds(broker: Broker, topic: str) -> tuple[int, int]:
    """Return the first offset of partition 0 that is left, and its end."""
    consumer = Consumer(options(broker, **{"group.id": "reader"}))
    try:
        partition = TopicPartition(topic, 0)
        first, end = consumer.get_watermark_offsets(partition, timeout=10)
        return first, end
    finally:
        consumer.close()


def read(broker: Broker, topic: str) -> list[bytes]:
    """Return every value of partition 0, from its first to its last.

    Nothing may be deleted meanwhile.
    """
    consumer = Consumer(options(broker, **{"group.id": "reader"}))
    try:
        partition = TopicPartition(topic, 0, 0)
        first, end = consumer.get_watermark_offsets(partition, timeout=10)
        consumer.assign([TopicPartition(topic, 0, first)])
        values: list[bytes] = []
        while first < end:
            message = consumer.poll(10)
            assert message is not None, f"{topic}: nothing at {first} of {end}"
            if message.error():
                raise KafkaException(message.error())
            values.append(message.value())
            first = message.offset() + 1
        return values
    finally:
        consumer.close()
