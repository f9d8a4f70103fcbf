"""Where the log ends: what Redis and brokers answer, and what if they do not."""

import asyncio
from typing import Any

import pytest
from redis.exceptions import ResponseError

from deploy.broker import Broker
from gateway import log_ends
from gateway.log_ends import (
    KafkaLog,
    LogEnds,
    PartitionEnd,
    decode_redis_ends,
    log_kind,
)
from ingest.kafka_address import KafkaTopic
from ingest.log import LogInfo
from tests.kafka import make_topic, produce

INFO = LogInfo("x", 2, 0)


def reply(**more: Any) -> dict[str, Any]:
    """Make an answer to XINFO STREAM."""
    return {
        "entries-added": 7,
        "length": 2,
        "last-generated-id": b"1000-1",
        "first-entry": (b"999-0", {}),
        **more,
    }


def test_the_ends_of_a_log_in_redis() -> None:
    """A partition that nobody has appended to is empty, not unknown."""
    missing = ResponseError("no such key")
    ends = decode_redis_ends(INFO, [reply(), missing])
    assert ends.of(0) == PartitionEnd(1000 << 21 | 1, 1000, 7, 2, 999 << 21)
    assert ends.of(1) == PartitionEnd(None, None, 0, 0)
    assert ends.last_append_ms == 1000


def test_a_stream_that_was_trimmed_to_nothing_still_has_an_end() -> None:
    """One that was made and never filled has none."""
    trimmed = reply(length=0, **{"first-entry": None})
    made = reply(**{"entries-added": 0, "length": 0, "last-generated-id": b"0-0"})
    ends = decode_redis_ends(INFO, [trimmed, made])
    assert ends.of(0) == PartitionEnd(1000 << 21 | 1, 1000, 7, 0, None)
    assert ends.of(1) == PartitionEnd(None, None, 0, 0)


def test_any_other_answer_is_raised() -> None:
    """A key of another type is nobody's log."""
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        decode_redis_ends(INFO, [ResponseError("WRONGTYPE")])


def test_nothing_is_known_of_a_log_that_cannot_be_asked() -> None:
    """Neither when it grew last nor where it ends."""
    ends = LogEnds("kafka", problem="away")
    assert (ends.last_append_ms, ends.of(0)) == (None, None)


def test_the_id_of_a_log_says_what_it_is_kept_in() -> None:
    """A topic's begins with it."""
    assert [log_kind("kafka:abc"), log_kind("abc")] == ["kafka", "redis"]


async def test_brokers_that_are_away_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for them for long, and they are asked once at a time."""
    monkeypatch.setattr(log_ends, "KAFKA_ANSWER_S", 0.05)
    log = KafkaLog(KafkaTopic("127.0.0.1:1", "trades"))
    found = await asyncio.gather(log.ends(), log.ends())
    for ends in found:
        assert ends.partitions is None
        assert ends.problem == "no Kafka broker at 127.0.0.1:1 answered within 0.05 s"


@pytest.mark.kafka
async def test_the_ends_of_a_topic(kafka: Broker) -> None:
    """Positions are offsets; a partition without entries ends before the first."""
    topic = make_topic(kafka, 2)
    log = KafkaLog(KafkaTopic(kafka.servers, topic))
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


async def answered(log: KafkaLog) -> LogEnds:
    """Return what brokers say, however long the first connection takes."""
    async with asyncio.timeout(20):
        while (ends := await log.ends()).problem is not None:
            pass
    return ends
