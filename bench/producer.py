"""How many trades a second a program in Python appends with `TradeProducer`.

It sends mappings, one by one, into logs of their own: a server of Redis, and, where
`make kafka-jars` has run, a broker of Kafka. Beside it the floor: the same trades,
encoded beforehand, appended by the writer of our own feeds in one loop. They come in
turn, round after round. The time is from the first `send` until `flush` returns; the
processor time is that of this process, without that of the servers.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from confluent_kafka.admin import AdminClient
from machine import NAMESPACE, end_on_signals, running_server

from deploy.loadtest.system.machine import describe_machine
from ingest.feed.supply import CHUNK
from ingest.kafka.address import KafkaTopic
from ingest.kafka.topic import create_topic
from ingest.kafka.topic_plan import TopicPlan
from ingest.kafka.writer import open_writer
from ingest.process.ports import free_port
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import LogAway, LogWriter
from ingest.tradelog.redis_log_reader import open_log
from ingest.tradelog.redis_log_writer import RedisLogWriter
from tickthrottle_client import TradeProducer

PARTITIONS = 4
CAP = 100_000_000
ROOT = Path(__file__).parent.parent

Sent = Sequence[dict[str, Any]]
Encoded = Sequence[tuple[str, bytes]]


def main() -> None:
    """Append with each in turn and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trades", type=int, default=300_000, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-kafka", action="store_true", help="Redis only")
    arguments = parser.parse_args()
    end_on_signals()
    encoded = _simulate(arguments.trades)
    sent = [json.loads(payload) for _, payload in encoded]
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with ExitStack() as stack:
        broker = None if arguments.no_kafka else stack.enter_context(_broker())
        for number in range(arguments.rounds):
            found["Redis: `TradeProducer`"].append(_redis(_produce_redis, sent))
            found["Redis: floor, the feeds' writer"].append(
                _redis(_write_redis, encoded)
            )
            if broker is not None:
                topics = [_topic(broker, f"{kind}-{number}") for kind in "ab"]
                address = f"kafka://{broker}/{topics[0].topic}"
                found["Kafka: `TradeProducer`"].append(
                    _measure(_produce, address, sent)
                )
                found["Kafka: floor, the feeds' writer"].append(
                    _measure(_write_kafka, topics[1], encoded)
                )
    print(f"\n{len(sent):,} trades, {arguments.rounds} runs of each, in turn\n")
    print("| log | trades/s, median | lowest | highest | µs of a core a trade |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, runs in found.items():
        rates = [len(sent) / seconds for seconds, _ in runs]
        own_us = median(own_s for _, own_s in runs) / len(sent) * 1e6
        cells = " | ".join(
            f"{rate:,.0f}" for rate in (median(rates), min(rates), max(rates))
        )
        print(f"| {name} | {cells} | {own_us:.1f} |")
    print(f"\nMachine: {describe_machine()}")


def _simulate(count: int) -> list[tuple[str, bytes]]:
    market = Simulator(rate=50_000, seconds=count / 50_000 + 1, repeats=0)
    found = []
    for event in market.events(1_773_964_800_000_000):
        found.append((event.key, event.payload))
        if len(found) == count:
            break
    return found


def _measure(
    work: Callable[[Any, Any], float], where: Any, trades: Any
) -> tuple[float, float]:
    """Return the seconds it took, and those of this process's processor time."""
    before_s = time.process_time()
    seconds = work(where, trades)
    return seconds, time.process_time() - before_s


def _redis(work: Callable[[Any, Any], float], trades: Any) -> tuple[float, float]:
    with running_server() as server:
        return _measure(work, server, trades)


def _produce_redis(server: Any, trades: Sent) -> float:
    return _produce(server.url, trades)


def _produce(address: str, trades: Sent) -> float:
    async def run() -> float:
        async with TradeProducer(address, partitions=PARTITIONS, cap=CAP) as producer:
            began = time.monotonic()
            for trade in trades:
                await producer.send(trade)
            await producer.flush()
            seconds = time.monotonic() - began
        if producer.acknowledged != len(trades) or producer.in_doubt:
            raise SystemExit(f"{producer.acknowledged:,} of {len(trades):,} are there")
        return seconds

    return asyncio.run(run())


def _write_redis(server: Any, trades: Encoded) -> float:
    info = open_log(server.client, NAMESPACE, PARTITIONS)
    return _write(RedisLogWriter(server.client, NAMESPACE, info, CAP), trades)


def _write_kafka(topic: KafkaTopic, trades: Encoded) -> float:
    _, writer = open_writer(topic)
    with closing(writer):
        return _write(writer, trades)


def _write(writer: LogWriter, trades: Encoded) -> float:
    began = time.monotonic()
    for begin in range(0, len(trades), CHUNK):
        chunk = trades[begin : begin + CHUNK]
        while True:
            try:
                writer.append(chunk)
            except LogAway:
                # A moment's silence of a broker: the same list waits on.
                continue
            break
    return time.monotonic() - began


@contextmanager
def _broker() -> Iterator[str]:
    """Run the broker that `make kafka` runs; yield its address."""
    port = free_port()
    folder = tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)
    command = [sys.executable, "-m", "tests.kafka_broker.serve", "--port", str(port)]
    process = subprocess.Popen([*command, "--state-dir", folder.name], cwd=ROOT)
    try:
        servers = f"127.0.0.1:{port}"
        asked = AdminClient({"bootstrap.servers": servers, "log_level": 0})
        deadline = time.monotonic() + 120
        while not _answers(asked):
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit("no broker: run `make kafka-jars`, or --no-kafka")
        yield servers
    finally:
        process.terminate()
        process.wait(30)
        folder.cleanup()


def _answers(client: AdminClient) -> bool:
    try:
        return bool(client.list_topics(timeout=1).brokers)
    except Exception:  # noqa: BLE001 - it is not up yet
        return False


def _topic(servers: str, name: str) -> KafkaTopic:
    topic = KafkaTopic(servers, name)
    create_topic(topic, PARTITIONS, TopicPlan(replication=1, retention_s=3_600))
    return topic


if __name__ == "__main__":
    main()
