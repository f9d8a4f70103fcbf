"""Trades that are taken back, in a topic: they may be in any of its partitions."""

import time

import pytest
import redis
from confluent_kafka import Producer

from ingest.redis_keys import Keys
from ingest.trade import Trade
from tests.kafka_broker.broker import Broker
from tests.published import read_snapshots
from tests.throttle.topic_job import TopicJob, W, make_log
from throttle.contract.ledger import Ledger

pytestmark = [pytest.mark.redis, pytest.mark.kafka]
A = "KR7005930003"


def test_the_trade_may_be_in_another_partition(
    kafka: Broker, redis_url: str, client: redis.Redis
) -> None:
    """And the newest one that stands in a third."""
    topic = make_log(kafka, 3)
    job = TopicJob(redis_url, client, topic)
    producer = Producer(topic.client_options({}))

    def publish(entry: Trade, partition: int) -> None:
        producer.produce(topic.topic, entry.to_wire(), partition=partition)
        assert producer.flush(30) == 0
        time.sleep(W / 1_000)
        job.publish()

    now_us = time.time_ns() // 1_000
    publish(Trade(A, now_us, 1, "70", "1"), 0)
    publish(Trade(A, now_us + 1, 2, "99", "1"), 1)
    publish(Trade.from_fields({"isin": A, "time": now_us + 2, "cancels": 2}), 2)
    shown = [row for one in read_snapshots(client) for row in one.rows]
    assert [row.version[:4] for row in shown] == [b"0000", b"0000", b"0001"]
    assert [b'"price":70' in row.body for row in shown] == [True, False, True]
    books = Ledger.decode("throttle", client.hgetall(Keys("tt").ledger("throttle")))
    assert books is not None
    assert (books.total.taken_back, books.problems()) == (1, [])
