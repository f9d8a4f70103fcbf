"""Where a topic ends: what brokers answer, and what if they do not."""

import asyncio
import time

import pytest
from confluent_kafka import Producer

from gateway.health import kafka_ends
from gateway.health.kafka_ends import KafkaEndsReader
from gateway.health.log_ends import LogEnds, PartitionEnd
from ingest.kafka.address import KafkaTopic
from tests.kafka import make_topic, options, produce
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


@pytest.mark.kafka
async def test_what_waits_behind_a_transaction_is_counted(kafka: Broker) -> None:
    """What was appended behind it can be read by nobody until it ends."""
    topic = make_topic(kafka)
    log = KafkaEndsReader(KafkaTopic(kafka.servers, topic))
    produce(kafka, topic, [b"1", b"2"])
    producer = Producer(options(kafka, **{"transactional.id": topic}))
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"3", partition=0)
    assert producer.flush(30) == 0
    produce(kafka, topic, [b"4", b"5", b"6"])

    end = (await answered(log)).of(0)
    assert end is not None
    assert (end.position, end.waiting) == (1, 4)
    later = (await answered(log)).of(0)
    assert later is not None
    assert later.waits_since_ms == end.waits_since_ms is not None

    producer.commit_transaction(30)
    # The brokers write its mark, which has an offset of its own, a moment later.
    async with asyncio.timeout(20):
        while end is None or end.position != 6:
            end = (await answered(log)).of(0)
    assert (end.waiting, end.waits_since_ms) == (0, None)


@pytest.mark.kafka
async def test_stamps_of_a_producer_that_are_off_are_told(kafka: Broker) -> None:
    """Seconds taken for milliseconds, and a clock that is half an hour ahead."""
    # A broker takes what is so old for done with.
    topic = make_topic(kafka, 2, retention_ms="-1")
    log = KafkaEndsReader(KafkaTopic(kafka.servers, topic))
    await answered(log)
    now_ms = time.time_ns() // 1_000_000
    producer = Producer(options(kafka))
    producer.produce(topic, b"1", partition=0, timestamp=now_ms // 1_000)
    producer.produce(topic, b"1", partition=1, timestamp=now_ms + 1_800_000)
    assert producer.flush(30) == 0
    seconds = ahead = None
    async with asyncio.timeout(30):
        # An answer may have been asked for before the entries were there.
        while not (seconds and ahead and seconds.stamp_off_ms and ahead.stamp_off_ms):
            ends = await answered(log)
            seconds, ahead = ends.of(0), ends.of(1)
    assert seconds.stamp_off_ms < -1_700_000_000_000
    assert 1_700_000 < ahead.stamp_off_ms <= 1_800_000
