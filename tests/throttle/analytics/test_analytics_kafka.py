"""Bars of a topic of Kafka, through real Spark, by the real clock."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import orjson
import pytest
import redis
from confluent_kafka import Producer
from prometheus_client import CollectorRegistry
from pyspark.sql import SparkSession

from ingest.kafka.address import KafkaTopic
from ingest.redis_keys import AnalyticsKeys
from ingest.trade import Trade
from tests.conftest import eventually
from tests.gateway.samples import make_isins
from tests.ingest.topics import make_topic
from tests.kafka_broker.broker import Broker
from tests.logged import logged_in_kafka
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.analytics_rig import fields_of, stored_bars
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.analytics.analytics_job import AnalyticsLeader
from throttle.analytics.metrics import AnalyticsMetrics
from throttle.analytics.partials.log_source import PartialBarsSource
from throttle.contract.tally import TallyBook
from throttle.settings import AnalyticsSettings

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.redis,
    pytest.mark.spark,
    pytest.mark.timeout(300),
]

KEYS = AnalyticsKeys("tt")
PARTITIONS = 2
LATE_MS = (0, 0, 0, 90_000, 150_000)
"""A trade is in time, or its bar has been closed for half a minute."""


def make_trades(count: int, seed: int) -> Iterator[Trade]:
    """Make trades of now, and late ones; one in ten takes the one before it back."""
    chance, isins = Random(seed), make_isins(5)
    newest: dict[str, int] = {}
    for number in range(count):
        time_us = (time.time_ns() // 1_000_000 - chance.choice(LATE_MS)) * 1_000
        price = str(chance.randrange(900, 1_100))
        seq, isin = seed * 1_000 + number, chance.choice(isins)
        extra = {}
        if number % 10 == 7 and isin in newest:
            extra = {"corrects": newest[isin]}
        if number % 20 == 7 and extra:
            fields = {"isin": isin, "time": time_us, "seq": seq}
            yield Trade.from_fields({**fields, "cancels": newest.pop(isin)})
        else:
            newest[isin] = seq
            yield Trade(isin, time_us, seq, price, "1.5", extra)


def append(topic: KafkaTopic, trades: Iterator[Trade]) -> int:
    """Append trades to any partition; return when all were acknowledged."""
    producer = Producer({"bootstrap.servers": topic.servers, "log_level": 0})
    for number, trade in enumerate(trades):
        producer.produce(topic.topic, trade.to_wire(), partition=number % PARTITIONS)
    assert producer.flush(30) == 0
    return time.time_ns() // 1_000_000


def entries_of(topic: KafkaTopic) -> Iterator[Entry]:
    """Yield what is in the topic, as an independent reader finds it."""
    for entry in logged_in_kafka(topic.servers, topic.topic):
        trade = Trade.from_wire(entry.payload)
        place = entry.append_ms, entry.partition, entry.position
        fields = trade.isin, trade.time_us, trade.seq, trade.price, trade.size
        more = {name: trade.extra.get(name) for name in ("cancels", "corrects")}
        yield Entry(*place, *fields, None, **more)


def has_read(client: redis.Redis, upto_ms: int) -> bool:
    """Say whether the job has published what the log had by then."""
    cut: Any = client.hget(KEYS.progress("bars"), "cut")
    return cut is not None and orjson.loads(cut)["end_ms"] > upto_ms


def test_bars_of_a_topic_are_right(
    spark: SparkSession,
    client: redis.Redis,
    redis_url: str,
    kafka: Broker,
    tmp_path: Path,
) -> None:
    """Of any partition, from before the job's start and after it, amended by late ones
    and by those that are taken back, from another partition, too.

    The books balance, and count what an independent reader finds.
    """
    topic = make_topic(kafka, PARTITIONS, message_timestamp_type="LogAppendTime")
    append(topic, make_trades(300, seed=1))
    settings = AnalyticsSettings(
        redis_url=redis_url,
        trade_log="kafka",
        kafka_servers=topic.servers,
        kafka_topic=topic.topic,
        state_dir=tmp_path,
        analytics="bars",
        analytics_batch_ms=500,
        lease_ms=500,
    )
    session, stop = spark.newSession(), threading.Event()
    session.dataSource.register(PartialBarsSource)
    metrics = AnalyticsMetrics(CollectorRegistry())
    leader = AnalyticsLeader(client, settings, stop, session, metrics)
    thread = threading.Thread(target=leader.lead)
    thread.start()
    try:
        eventually(lambda: has_read(client, 0), 90)
        end_ms = append(topic, make_trades(300, seed=2))
        eventually(lambda: has_read(client, end_ms), 60)
    finally:
        stop.set()
        thread.join()
    entries = list(entries_of(topic))
    assert len(entries) == 600
    expected, too_late = bar_oracle.bars(entries, Rules())
    found = stored_bars(client, KEYS)
    assert {place: fields_of(bar) for place, bar in found.items()} == expected
    assert any(bar.revision for bar in found.values())
    assert too_late.total() == 0
    stored: Any = client.hgetall(KEYS.ledger("bars"))
    book = TallyBook.decode("bars", stored)
    assert book is not None
    assert book.problems() == []
    tallies = book.partitions.values()
    assert [tally.read for tally in tallies] == [300, 300]
    standing = sum(bar.trades for bar in found.values())
    assert sum(t.counted - t.taken_back for t in tallies) == standing
    assert sum(t.taken_back for t in tallies) > 20
    assert client.hget(KEYS.state("bars"), "stopped") == b"1"
