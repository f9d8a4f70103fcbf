"""The end of a topic, looked at again and again."""

import asyncio

import pytest

from gateway.operators.firehose import log_end
from gateway.operators.firehose.firehose_sample import LogPiece
from gateway.operators.firehose.log_end import KafkaLogEnd
from gateway.upstream.trade_tail import LogUnread
from ingest.kafka.address import KafkaTopic
from tests.kafka import make_topic, produce
from tests.kafka_broker.broker import Broker


async def test_brokers_that_are_away_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody waits for them for long."""
    monkeypatch.setattr(log_end, "KAFKA_ANSWER_S", 0.05)
    end = KafkaLogEnd(KafkaTopic("127.0.0.1:1", "trades"))
    for _ in range(2):
        with pytest.raises(LogUnread, match=r"127\.0\.0\.1:1 answered within 0\.05 s"):
            await end.look(10)


@pytest.mark.kafka
async def test_the_newest_of_what_came_is_read(kafka: Broker) -> None:
    """No more than may be; all that came is counted, also what is left out."""
    topic = make_topic(kafka, 2)
    produce(kafka, topic, [b"before"])
    end = KafkaLogEnd(KafkaTopic(kafka.servers, topic))
    assert await looked(end, 10) == LogPiece()
    produce(kafka, topic, [b"1", b"2"])
    piece = await looked(end, 10)
    assert (piece.appended, [e.payload for e in piece.entries]) == (2, [b"1", b"2"])
    assert piece.entries[0].append_ms > 0
    produce(kafka, topic, [b"%d" % n for n in range(100)])
    piece = await looked(end, 3)
    assert (piece.appended, [e.payload for e in piece.entries]) == (
        100,
        [b"97", b"98", b"99"],
    )
    assert await looked(end, 3) == LogPiece(0, [])
    produce(kafka, topic, [b"unseen"])
    # Who comes later sees what comes later.
    end.begin()
    assert await looked(end, 10) == LogPiece()


async def looked(end: KafkaLogEnd, most: int) -> LogPiece:
    """Return what a look brings, however long the first connection takes."""
    async with asyncio.timeout(30):
        while True:
            try:
                return await end.look(most)
            except LogUnread:
                pass
