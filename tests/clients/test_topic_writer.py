"""``TradeProducer`` on a real Kafka broker: everything is there once, and counted."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from cli.command_line import app
from ingest.feed.receipt import read_receipt
from ingest.kafka.address import KafkaTopic
from ingest.trade import Trade
from tests.clients.patience import soon
from tests.conftest import PATIENCE
from tests.ingest.topics import logged, make_topic, payloads
from tests.kafka import options, sasl_options
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tests.throttle.topic_job import TopicJob
from tickthrottle_client import (
    LogAway,
    LogUnusable,
    NotAppended,
    TradeProducer,
    topic_writer,
)
from tickthrottle_client.kafka_client import open_topic
from tickthrottle_client.log_v1 import partition_of

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

ISINS = ("KR7005930003", "KR7000660001", "KR7035420009")
NOW_US = 1_773_964_804_000_000


def address(topic: KafkaTopic) -> str:
    return f"kafka://{topic.servers}/{topic.topic}"


def make_fields(number: int, **changed: Any) -> dict[str, Any]:
    isin = ISINS[number % len(ISINS)]
    whole = {"isin": isin, "time": NOW_US, "seq": number, "price": "1.50", "size": 3}
    return {**whole, **changed}


def seqs(topic: KafkaTopic, partitions: int) -> list[list[int]]:
    return [
        [Trade.from_wire(message.value() or b"").seq for message in messages]
        for messages in logged(topic, partitions)
    ]


def expected(count: int, partitions: int) -> list[list[int]]:
    """Return the numbers that each partition is to have, in order."""
    places = [partition_of(isin, partitions) for isin in ISINS]
    return [
        [n for n in range(count) if places[n % len(ISINS)] == partition]
        for partition in range(partitions)
    ]


async def test_what_was_sent_is_in_the_topic_once_in_order(
    kafka: Broker, tmp_path: Path
) -> None:
    """In the partitions that every feed uses; tallies and receipt tell where."""
    topic, path = make_topic(kafka, 3), tmp_path / "receipt.json"
    async with TradeProducer(address(topic), receipt=path) as producer:
        for number in range(12_000):
            await producer.send(make_fields(number))
        await producer.flush()
        assert (producer.acknowledged, producer.waiting_bytes) == (12_000, 0)
    assert seqs(topic, 3) == expected(12_000, 3)
    receipt = read_receipt(path.read_bytes())
    assert receipt.log_id == open_topic(topic).log_id == producer.log.log_id
    for messages, tally in zip(logged(topic, 3), receipt.partitions, strict=True):
        assert tally.acknowledged == len(messages)
        if messages:
            assert (tally.first, tally.last) == (0, len(messages) - 1)


@pytest.mark.redis
async def test_a_receipt_is_what_reconcile_accepts(
    kafka: Broker,
    redis_url: str,
    client: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command that compares finds every trade."""
    topic, path = make_topic(kafka, 4), tmp_path / "receipt.json"
    for name, value in (
        ("REDIS_URL", redis_url),
        ("TICKTHROTTLE_TRADE_LOG", "kafka"),
        ("TICKTHROTTLE_KAFKA_SERVERS", topic.servers),
        ("TICKTHROTTLE_KAFKA_TOPIC", topic.topic),
    ):
        monkeypatch.setenv(name, value)
    async with TradeProducer(address(topic), receipt=path) as producer:
        for number in range(600):
            await producer.send(make_fields(number))
    await asyncio.to_thread(TopicJob(redis_url, client, topic).publish)
    done: Result = CliRunner().invoke(app, ["reconcile", "--acknowledged", str(path)])
    assert "every trade is accounted for" in done.output, done.output
    assert producer.acknowledged == 600


async def test_a_broker_frozen_and_killed_loses_and_doubles_nothing(
    own_kafka: Broker,
) -> None:
    """Across a silence and a power cut; meanwhile send waits and memory is bounded."""
    topic = make_topic(own_kafka, 2)
    most = 0

    async def disturb(producer: TradeProducer) -> None:
        await soon(lambda: producer.acknowledged > 1_000)
        await asyncio.to_thread(own_kafka.pause)
        await soon(lambda: producer.away is not None)
        await asyncio.to_thread(own_kafka.resume)
        await soon(lambda: producer.away is None, 30)
        await asyncio.to_thread(own_kafka.kill)
        await soon(lambda: producer.away is not None)
        await asyncio.to_thread(own_kafka.start)

    bounded = TradeProducer(address(topic), buffer_bytes=300_000, leave_within_s=120)
    async with bounded as producer:
        disturbing = asyncio.create_task(disturb(producer))
        number = 0
        while not disturbing.done() or number % 1_000:
            await producer.send(make_fields(number))
            number += 1
            most = max(most, producer.waiting_bytes)
            if number % 100 == 0:
                await asyncio.sleep(0.01)
        await disturbing
    assert (producer.acknowledged, producer.in_doubt) == (number, 0)
    assert most <= 300_000
    assert seqs(topic, 2) == expected(number, 2)


async def test_what_is_left_when_the_time_is_over_is_told(
    own_kafka: Broker, tmp_path: Path
) -> None:
    """Soon, in the exception and in the receipt."""
    topic, path = make_topic(own_kafka, 2), tmp_path / "receipt.json"
    producer = TradeProducer(address(topic), receipt=path, leave_within_s=2.5)

    async def produce() -> None:
        async with producer:
            await producer.send(make_fields(0))
            await producer.flush()
            own_kafka.pause()
            for number in range(1, 8_001):
                await producer.send(make_fields(number))

    loop = asyncio.get_running_loop()
    began_s = loop.time()
    with pytest.raises(NotAppended, match=r"not within 2\.5 s") as caught:
        await produce()
    assert loop.time() - began_s < 8 * PATIENCE
    left = caught.value
    assert left.unsent + left.in_doubt == 8_000
    assert left.in_doubt == producer.in_doubt > 0
    receipt = read_receipt(path.read_bytes())
    assert receipt.refused == {"unsent": left.unsent}
    assert sum(tally.in_doubt for tally in receipt.partitions) == left.in_doubt
    own_kafka.resume()
    found = len(payloads(topic, 2))
    assert 1 <= found <= 1 + left.in_doubt


async def test_a_cancelled_block_appends_what_it_was_given(kafka: Broker) -> None:
    """The first cancellation is waited for."""
    topic = make_topic(kafka, 1)
    taken = asyncio.Event()

    async def produce() -> None:
        async with TradeProducer(address(topic)) as producer:
            for number in range(500):
                await producer.send(make_fields(number))
            taken.set()
            await asyncio.sleep(600)

    task = asyncio.create_task(produce())
    await taken.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seqs(topic, 1) == [list(range(500))]


async def test_what_the_topic_cannot_take_is_refused_alone(
    kafka: Broker, tmp_path: Path
) -> None:
    """Counted by reason; the others are there."""
    topic, path = make_topic(kafka, 1, max_message_bytes="5000"), tmp_path / "r.json"
    plain = {"compression.type": "none"}
    one = TradeProducer(address(topic), kafka_options=plain, receipt=path)
    async with one as producer:
        for number in range(300):
            note = "x" * 8_000 if number % 100 == 50 else "x"
            await producer.send(make_fields(number, note=note))
        await producer.flush()
        assert producer.refused == {"too_large_for_log": 3}
    assert producer.acknowledged == 297
    found = sorted(number for numbers in seqs(topic, 1) for number in numbers)
    assert found == [n for n in range(300) if n % 100 != 50]
    assert read_receipt(path.read_bytes()).refused == {"too_large_for_log": 3}


async def test_a_topic_that_was_made_anew_gets_nothing(
    kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic of the same name is another log, whenever it is looked at."""
    monkeypatch.setattr(topic_writer, "_LOOKS_EVERY_S", 0)
    topic = make_topic(kafka, 1)
    admin = AdminClient(options(kafka))

    async def produce() -> None:
        async with TradeProducer(address(topic)) as producer:
            await producer.send(make_fields(0))
            await producer.flush()
            admin.delete_topics([topic.topic])[topic.topic].result(timeout=30)
            made = admin.create_topics([NewTopic(topic.topic, 1, 1)])
            made[topic.topic].result(timeout=30)
            await producer.send(make_fields(1))
            await producer.flush()

    with pytest.raises(LogUnusable, match=r"another one now|does not exist"):
        await produce()
    assert payloads(topic, 1) == []


async def test_two_producers_at_once(kafka: Broker) -> None:
    """Both write, and each counts its own."""
    topic = make_topic(kafka, 1)

    async def produce(start: int) -> int:
        async with TradeProducer(address(topic)) as producer:
            for number in range(start, start + 2_000):
                await producer.send(make_fields(number))
        return producer.acknowledged

    assert await asyncio.gather(produce(0), produce(10_000)) == [2_000, 2_000]
    [found] = seqs(topic, 1)
    for start in (0, 10_000):
        own = [n for n in found if start <= n < start + 2_000]
        assert own == list(range(start, start + 2_000))


async def test_options_reach_the_client_and_bad_ones_are_told(kafka: Broker) -> None:
    """Credentials, for instance."""
    topic = make_topic(kafka, 1)
    secured = f"kafka://{kafka.sasl_servers}/{topic.topic}"
    given = sasl_options(kafka, kafka.password)
    del given["bootstrap.servers"], given["log_level"]
    async with TradeProducer(secured, kafka_options=given) as producer:
        await producer.send(make_fields(0))
    assert producer.acknowledged == 1
    wrong = {**given, "sasl.password": "sesame"}
    for bad, said in ((wrong, "access refused"), ({"linger.msec": "5"}, "linger")):
        with pytest.raises(LogUnusable, match=said) as caught:
            await TradeProducer(secured, kafka_options=bad).__aenter__()
        assert "sesame" not in str(caught.value)


async def test_a_topic_or_broker_that_is_not_there_is_told(kafka: Broker) -> None:
    """With what creates the topic."""
    with pytest.raises(LogUnusable, match=r"does not exist.*`tickthrottle topic`"):
        await TradeProducer(f"kafka://{kafka.servers}/missing").__aenter__()
    servers = f"127.0.0.1:{free_port()}"
    with pytest.raises(LogAway, match=f"no Kafka broker answers at {servers}"):
        await TradeProducer(f"kafka://{servers}/missing").__aenter__()
