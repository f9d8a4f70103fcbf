"""A throttle job over a topic, without Spark: the product's rules by the real clock."""

import threading
import time
from collections.abc import Iterable
from typing import Any

import orjson
import redis
from confluent_kafka import KafkaError, Message, Producer

from ingest.feed.receipt import Receipt
from ingest.kafka.address import KafkaTopic
from ingest.redis_keys import Keys
from ingest.tradelog.contract import (
    AppendTally,
    LogAway,
    LogInfo,
    LogUnusable,
    partition_of,
)
from tests.conftest import eventually
from tests.ingest.topics import make_topic
from tests.kafka_broker.broker import Broker
from throttle.contract.cut import Cut
from throttle.leadership import Candidate
from throttle.settings import ThrottleSettings
from throttle.spark.options import source_options
from throttle.spark.source import TradeLogReader
from throttle.testing.driver import next_batch
from tickthrottle_client.kafka_client import open_topic

W = 200


class TopicJob:
    """One job; its windows are short, for the clock is real."""

    def __init__(
        self, redis_url: str, client: redis.Redis, topic: KafkaTopic, **settings: Any
    ) -> None:
        fields = {
            "trade_log": "kafka",
            "kafka_servers": topic.servers,
            "kafka_topic": topic.topic,
            "redis_url": redis_url,
            "window_ms": W,
            "max_windows_per_batch": 1_000,
            "kafka_margin_ms": 0,
        }
        self.settings = ThrottleSettings(**{**fields, **settings})
        self._client = client
        candidate = Candidate(client, self.settings, threading.Event())
        self.info = candidate.open_log()
        if candidate.take(self.info, lambda: None) is None:
            raise RuntimeError("the topic was made again")
        # Nobody renews it.
        client.persist(Keys(self.settings.namespace).lease(self.settings.job))
        options = source_options(self.settings, self.info, candidate.lease.owner)
        self._reader, self._candidate = TradeLogReader(options), candidate
        self._batches = 0

    @property
    def cut(self) -> Cut:
        """How far it has published."""
        meta = Keys(self.settings.namespace).meta
        stored: Any = self._client.hget(meta, f"cut:{self.settings.job}")
        return Cut.from_offset(orjson.loads(stored))

    def publish(self) -> None:
        """Publish all windows that have begun by now."""
        until_ms = time.time_ns() // 1_000_000
        while (start := self.cut).end_ms <= until_ms:
            batch = next_batch(self._reader, start, W)
            if batch.end != start:
                self._candidate.publish(batch, self._batches)
                self._batches += 1


def make_log(broker: Broker, partitions: int) -> KafkaTopic:
    """Create a topic that is stamped by the broker; it is there when this returns."""
    topic = make_topic(broker, partitions, message_timestamp_type="LogAppendTime")

    def known() -> LogInfo | None:
        try:
            return open_topic(topic)
        except (LogAway, LogUnusable):
            return None

    eventually(known)
    return topic


def append(topic: KafkaTopic, entries: Iterable[tuple[str, bytes]]) -> Receipt:
    """Append entries by ISIN, as a feed does; return the receipt it would leave.

    A feed's own writer takes a second to begin.
    """
    info = open_topic(topic)
    tallies = [AppendTally() for _ in range(info.partitions)]

    def count(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        tally, at = tallies[message.partition() or 0], message.offset()
        tally.acknowledged += 1
        tally.first, tally.last = at if tally.first is None else tally.first, at

    # Otherwise a batch that is sent again may come behind the one after it.
    producer = Producer(topic.client_options({"enable.idempotence": True}))
    for isin, payload in entries:
        producer.produce(
            topic.topic,
            payload,
            isin.encode(),
            partition=partition_of(isin, info.partitions),
            on_delivery=count,
        )
    assert producer.flush(30) == 0
    return make_receipt(info.log_id, *tallies)


def make_receipt(log_id: str, *tallies: AppendTally, ended: bool = True) -> Receipt:
    """Make what a feed leaves behind, that was refused nothing."""
    return Receipt(log_id, 0, 1, ended, {}, 0, tallies)
