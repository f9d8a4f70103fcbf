"""What a consumer of its own finds in a topic, with nothing of the product's."""

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.kafka import options
from tests.kafka_broker.broker import Broker


class Read(NamedTuple):
    """A record: its key, its value with exact numbers, and its headers.

    One that deletes its key has no value.
    """

    key: str
    value: Any
    headers: dict[str, str]


def committed(
    broker: Broker, topic: str, read_avro: Callable[[bytes], Any] | None = None
) -> list[Read]:
    """Return every committed record of a topic, partition by partition.

    Values are JSON, and of a zero's framing what ``read_avro`` makes of them.
    """
    consumer = Consumer(
        options(
            broker,
            **{
                "group.id": "reader",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
            },
        )
    )
    found: list[Read] = []
    try:
        described = consumer.list_topics(topic, 10).topics[topic]
        for partition in sorted(described.partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(10)
                assert message is not None, f"{topic}: nothing comes"
                error = message.error()
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    break
                if error is not None:
                    raise KafkaException(error)
                encoded = message.value()
                if encoded and encoded[0] == 0 and read_avro is not None:
                    value = read_avro(encoded)
                else:
                    value = encoded and json.loads(
                        encoded, parse_float=Decimal, parse_int=Decimal
                    )
                headers = {n: v.decode() for n, v in message.headers() or ()}
                key = (message.key() or b"").decode()
                found.append(Read(key, value, headers))
        return found
    finally:
        consumer.close()
