"""Trades into a topic of Kafka: backlogs with times of the past, and live feeds.

As ``fill.py`` does it for streams. As a program it is a live feed in a process of its
own, paced by the clock alone.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import count, pairwise
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)
from fill import (
    POOL,
    SEQ_STEP,
    TICK_MS,
    Backlog,
    Pool,
    create_pool,
    say,
)

from ingest.log import LogInfo

TOPIC = "trades"
_BATCH = 5_000
_OPTIONS = {
    "enable.idempotence": True,
    "compression.type": "lz4",
    "linger.ms": 5,
    "queue.buffering.max.messages": 500_000,
    "log_level": 0,
}


def settings(servers: str) -> dict[str, str]:
    """Return what a feed and a job have to be told to use the topic."""
    return {
        "TICKTHROTTLE_LOG": "kafka",
        "TICKTHROTTLE_KAFKA_SERVERS": servers,
        "TICKTHROTTLE_KAFKA_TOPIC": TOPIC,
    }


def create_topic(servers: str, partitions: int) -> None:
    """Create the topic that is measured, stamped by the broker."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    config = {"message.timestamp.type": "LogAppendTime"}
    admin.create_topics([NewTopic(TOPIC, partitions, 1, config=config)])[TOPIC].result()


def stamp_by_producer(servers: str) -> None:
    """Let producers say when an entry was appended: a backlog has been recorded."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    setting = ConfigEntry(
        "message.timestamp.type",
        "CreateTime",
        incremental_operation=AlterConfigOpType.SET,
    )
    resource = ConfigResource(
        ConfigResource.Type.TOPIC, TOPIC, incremental_configs=[setting]
    )
    admin.incremental_alter_configs([resource])[resource].result()


class Connection:
    """A producer that counts what was acknowledged."""

    def __init__(self, servers: str) -> None:
        self._producer = Producer({"bootstrap.servers": servers, **_OPTIONS})
        self.acknowledged = 0

    def send(self, messages: Sequence[dict[str, Any]]) -> None:
        """Hand messages over; wait while there is no room for them."""
        left = list(messages)
        while left:
            taken = self._producer.produce_batch(TOPIC, left, on_delivery=self._count)
            if taken < len(left):
                left = [message for message in left if message.pop("_error", None)]
                self._producer.poll(0.05)
            else:
                left = []
        self._producer.poll(0)

    def send_stamped(self, payload: bytes, partition: int, stamp_ms: int) -> None:
        """Hand over one message with a time of its own; wait while there is no room."""
        while True:
            try:
                self._producer.produce(
                    TOPIC,
                    payload,
                    partition=partition,
                    timestamp=stamp_ms,
                    on_delivery=self._count,
                )
            except BufferError:
                self._producer.poll(0.05)
            else:
                return

    def poll(self) -> None:
        """Take in what was acknowledged."""
        self._producer.poll(0)

    def wait(self) -> None:
        """Wait until all was acknowledged."""
        while self._producer.flush(1):
            continue

    def _count(self, error: Any, message: Any) -> None:
        if error is not None:
            raise RuntimeError(f"the broker refused an entry: {error}")
        self.acknowledged += 1


def fill(
    servers: str, partitions: int, entries: int, rate: float, issues: int
) -> Backlog:
    """Fill an empty topic with trades that were recorded at ``rate`` until just now."""
    pool = create_pool(LogInfo("", partitions, 0), rate, issues)
    rounds = -(-entries // len(pool.templates))
    start_us = time.time_ns() // 1_000 - rounds * pool.span_us
    connection, left, last_ms = Connection(servers), entries, 0
    for number in count():
        from_us, from_seq = start_us + number * pool.span_us, number * SEQ_STEP
        for at in range(0, len(pool.templates), _BATCH):
            batch = pool.templates[at : min(at + _BATCH, at + left)]
            if not batch:
                connection.wait()
                return Backlog(connection.acknowledged, last_ms)
            left -= len(batch)
            for t in batch:
                payload = t.payload % (from_us + t.time_us, from_seq + t.seq)
                stamp_ms = (from_us + t.due_us) // 1_000
                connection.send_stamped(payload, t.partition, stamp_ms)
            connection.poll()
            last_ms = (from_us + batch[-1].due_us) // 1_000
    raise AssertionError("unreachable")


def feed(servers: str, partitions: int, rate: int, seconds: float, issues: int) -> None:
    """Append at a steady rate; print when it starts and, at the end, how it went."""
    trades = min(POOL, int(rate * seconds))
    pool = create_pool(LogInfo("", partitions, 0), rate, issues, trades)
    ticks = _ticks(pool, rate)
    ticks_in_all = int(seconds * 1_000) // TICK_MS
    connection, behind_s, sent = Connection(servers), 0.0, 0
    say(started_ms=time.time_ns() // 10**6)
    start_s = time.monotonic()
    for number in range(ticks_in_all):
        due_s = start_s + number * TICK_MS / 1_000
        time.sleep(max(0, due_s - time.monotonic()))
        behind_s = max(behind_s, time.monotonic() - due_s)
        now_us = time.time_ns() // 1_000
        tick = ticks[number % len(ticks)]
        connection.send(
            [
                {"value": payload % (now_us, seq), "partition": partition}
                for seq, partition, payload in tick
            ]
        )
        sent += len(tick)
    connection.wait()
    took_s = max(time.monotonic() - start_s, ticks_in_all * TICK_MS / 1_000)
    say(
        sent=sent,
        rate=connection.acknowledged / took_s,
        behind_ms=behind_s * 1_000,
        ended_ms=time.time_ns() // 10**6,
    )


def _ticks(pool: Pool, rate: int) -> list[list[tuple[int, int, bytes]]]:
    trades = [(t.seq, t.partition, t.payload) for t in pool.templates]
    bounds = range(0, len(trades) * 1_000 // (rate * TICK_MS) + 1)
    places = [number * rate * TICK_MS // 1_000 for number in bounds]
    return [trades[start:end] for start, end in pairwise(places)]


def main() -> None:
    """Feed the topic on this machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--servers", required=True)
    parser.add_argument("--rate", type=int, required=True, help="trades per second")
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--issues", type=int, default=2_879)
    parser.add_argument("--partitions", type=int, default=4)
    chosen = parser.parse_args()
    feed(chosen.servers, chosen.partitions, chosen.rate, chosen.seconds, chosen.issues)


if __name__ == "__main__":
    main()
