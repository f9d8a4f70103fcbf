"""Where a topic ends: what brokers answer, and what if they do not."""

import asyncio

import pytest

from gateway.health import kafka_ends
from gateway.health.kafka_ends import KafkaEndsReader
from gateway.health.log_ends import LogEnds, PartitionEnd
from ingest.kafka.address import KafkaTopic
from tests.kafka import make_topic, produce
from tests.kafka_broker.broker import Broker


async def test_brokers_that_are_away_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for them for long, and they are asked once at a time."""
    monkeypatch.setattr(kafka_ends, "KAFKA_ANSWER_S", 0.05)
    log = KafkaEndsReader(KafkaTopic("127.0.0.1:1", "trades"))
    answers = await asyncio.gather(log.ends(), log.ends())
    for ends in answers:
        assert ends.partitions is None
        assert ends.problem == "no Kafka broker at 127.0.0.1:1 answered within 0.05 s"


@pytest.mark.kafka
async def test_the_ends_of_a_topic(kafka: Broker) -> None:
    """Positions are offsets; a partition without entries ends before the first."""
    topic = make_topic(kafka, 2)
    log = KafkaEndsReader(KafkaTopic(kafka.servers, topic))
    ends = await answered(log)
    assert ends.of(0) == PartitionEnd(-1, None)
    produce(kafka, topic, [b"1", b"2", b"3"])
    ends = await answered(log)
    assert ends.kind == "kafka"
    assert str(ends.log_id).startswith("kafka:")
    first = ends.of(0)
    assert first is not None
    assert first.position == 2
    assert first.append_ms == ends.last_append_ms is not None
    assert ends.of(1) == PartitionEnd(-1, None)


async def answered(log: KafkaEndsReader) -> LogEnds:
    """Return what brokers say, however long the first connection takes."""
    async with asyncio.timeout(20):
        while (ends := await log.ends()).problem is not None:
            pass
    return ends
