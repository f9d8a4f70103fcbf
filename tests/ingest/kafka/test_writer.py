"""Appending to a topic of Kafka: once each, whatever happens to the broker."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import pytest
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs

from ingest.feed.pacer import FeedReport, run_feed
from ingest.kafka.address import KafkaTopic
from ingest.kafka.writer import KafkaLogWriter
from ingest.sources.event import Event
from ingest.tradelog.contract import (
    AppendTally,
    LogAway,
    LogInfo,
    LogUnusable,
    partition_of,
)
from tests.conftest import PATIENCE, eventually
from tests.ingest.topics import logged, make_topic, mock_cluster, payloads
from tests.kafka import options
from tests.kafka_broker.broker import Broker
from tests.ports import free_port
from tickthrottle_client.kafka_client import open_topic
from tickthrottle_client.topic_writer import TOO_LARGE

ISIN = "KR7005930003"
ISINS = [f"KR7{number:09d}" for number in range(500)]


@pytest.fixture(scope="module")
def mock() -> Iterator[str]:
    """The address of a make-believe broker."""
    with mock_cluster() as servers:
        yield servers


@pytest.fixture
def writer_of() -> Iterator[Callable[..., KafkaLogWriter]]:
    """What opens writers on make-believe topics, closed at the end."""
    opened = []

    def open_one(topic: KafkaTopic) -> KafkaLogWriter:
        opened.append(KafkaLogWriter(topic, LogInfo("id", 4, 0)))
        opened[-1].connect()
        return opened[-1]

    yield open_one
    for writer in opened:
        writer.close()


def make_entries(count: int, start: int = 0) -> list[tuple[str, bytes]]:
    """Numbered entries of many instruments."""
    return [(ISINS[n % len(ISINS)], b"%d" % n) for n in range(start, start + count)]


def insist(writer: KafkaLogWriter, entries: Sequence[tuple[str, bytes]]) -> int:
    """Append as the pacer does: the same list until it is through."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return writer.append(entries)
        except LogAway:
            assert time.monotonic() < deadline


def feed_numbers(
    writer: KafkaLogWriter, count: int, rate: int, stop: threading.Event | None = None
) -> FeedReport:
    """Feed numbered events at a rate."""
    events = (
        Event(n * 1_000_000 // rate, isin, payload)
        for n, (isin, payload) in enumerate(make_entries(count))
    )
    return run_feed(
        events,
        writer,
        clock=time.monotonic,
        sleep=time.sleep,
        stop=stop or threading.Event(),
        on_progress=[].append,
    )


def test_an_instrument_has_the_partition_it_has_in_every_log(
    mock: str, writer_of: Callable[..., KafkaLogWriter]
) -> None:
    """The client's own rule for keys is ``partition_of``; there is always a key."""
    topic = KafkaTopic(mock, "partitions")
    assert insist(writer_of(topic), [(isin, b"x") for isin in ISINS]) == len(ISINS)
    found = logged(topic, 4)
    keys = [[(m.key() or b"").decode() for m in messages] for messages in found]
    assert keys == [[i for i in ISINS if partition_of(i, 4) == p] for p in range(4)]


def test_another_partitioner_may_be_set(
    mock: str, writer_of: Callable[..., KafkaLogWriter]
) -> None:
    """Where other producers are Java, ``kafka_config`` has it their way."""
    topic = KafkaTopic(mock, "java", (("partitioner", "murmur2_random"),))
    insist(writer_of(topic), [(isin, b"x") for isin in ISINS])
    places = [
        (m.key(), p) for p, messages in enumerate(logged(topic, 4)) for m in messages
    ]
    own = [(isin.encode(), partition_of(isin, 4)) for isin in ISINS]
    assert sorted(key for key, _ in places) == sorted(key for key, _ in own)
    assert sorted(places) != sorted(own)


def test_tallies_say_what_is_where(
    mock: str, writer_of: Callable[..., KafkaLogWriter]
) -> None:
    """For each partition: how many, and the offsets of the first and the last."""
    topic = KafkaTopic(mock, "tallies")
    other, writer = writer_of(topic), writer_of(topic)
    insist(other, [(isin, b"x") for isin in ISINS])
    assert insist(writer, make_entries(2_000)) == 2_000
    assert writer.append([]) == 0
    for partition, (before, tally) in enumerate(
        zip(other.tallies, writer.tallies, strict=True)
    ):
        count = sum(partition_of(isin, 4) == partition for isin in ISINS)
        assert before == AppendTally(count, 0, count - 1, 0)
        assert tally == AppendTally(4 * count, count, 5 * count - 1, 0)


def test_more_than_the_queue_holds_goes_through_it(
    mock: str, writer_of: Callable[..., KafkaLogWriter]
) -> None:
    """However long a list is, the client never holds more than it may."""
    topic = KafkaTopic(mock, "queue", (("queue.buffering.max.messages", "300"),))
    writer = writer_of(topic)
    entries = make_entries(5_000)
    assert insist(writer, entries) == 5_000
    assert sorted(payloads(topic, 4)) == sorted(payload for _, payload in entries)


def test_what_the_client_finds_too_large_is_refused_and_the_rest_goes_on(
    mock: str, writer_of: Callable[..., KafkaLogWriter]
) -> None:
    """The limit of the client itself, before anything is sent."""
    topic = KafkaTopic(mock, "small", (("message.max.bytes", "2000"),))
    writer = writer_of(topic)
    large = (ISIN, b"x" * 3_000)
    with capture_logs() as logs:
        entries = [(ISIN, b"1"), *[large] * 8, (ISIN, b"2")]
        assert insist(writer, entries) == 2
    assert payloads(topic, 4) == [b"1", b"2"]
    assert writer.refused == {TOO_LARGE: 8}
    assert [(entry["isin"], entry["bytes"]) for entry in logs] == [(ISIN, 3_000)] * 5


def test_a_list_under_way_stands_in_the_way_of_another() -> None:
    """To append something else meanwhile is a mistake, and told."""
    topic = KafkaTopic(f"127.0.0.1:{free_port()}", "none")
    writer = KafkaLogWriter(topic, LogInfo("id", 1, 0))
    entries = [(ISIN, b"1"), (ISIN, b"2")]
    began = time.monotonic()
    for _ in range(2):
        with pytest.raises(LogAway, match="no Kafka broker answers"):
            writer.append(entries)
    assert 1.9 < time.monotonic() - began < 4 * PATIENCE
    with pytest.raises(RuntimeError, match="only its own list may follow"):
        writer.append(list(entries))
    writer.close()
    # Nothing was sent: no partition was known yet.
    assert writer.tallies == [AppendTally()]


def test_an_option_that_the_client_does_not_take_is_told() -> None:
    """A mistake in ``kafka_config`` stops the start."""
    topic = KafkaTopic("127.0.0.1:1", "none", (("linger.msec", "5"),))
    with pytest.raises(LogUnusable, match=r"kafka_config: .*linger\.msec"):
        KafkaLogWriter(topic, LogInfo("id", 1, 0))


@pytest.mark.kafka
def test_what_was_appended_is_in_the_topic_once(kafka: Broker) -> None:
    """Many appends, many partitions: every entry once, each instrument in order."""
    topic = make_topic(kafka, 3)
    writer = KafkaLogWriter.open(topic)
    for start in range(0, 20_000, 5_000):
        assert insist(writer, make_entries(5_000, start)) == 5_000
    writer.close()
    found = logged(topic, 3)
    assert writer.info.partitions == 3
    assert [len(each) for each in found] == [t.acknowledged for t in writer.tallies]
    numbers = [[int(m.value() or b"") for m in messages] for messages in found]
    assert all(each == sorted(each) for each in numbers)
    assert sorted(n for each in numbers for n in each) == list(range(20_000))


@pytest.mark.kafka
@pytest.mark.parametrize("limit", ["65536", "1048588", "10000"])
def test_what_the_broker_finds_too_large_costs_nothing_else(
    kafka: Broker, limit: str
) -> None:
    """Beside what is over the topic's limit everything is appended, once."""
    topic = make_topic(kafka, 2, max_message_bytes=limit)
    topic = replace(topic, options=(("compression.type", "none"),))
    writer = KafkaLogWriter.open(topic)
    size = int(limit) if int(limit) < 1_000_000 else 999_000
    entries = make_entries(3_000)
    large = [(ISINS[n], b"x" * size) for n in range(5)]
    for place, entry in zip(range(0, 2_500, 500), large, strict=True):
        entries.insert(place, entry)
    is_over = int(limit) < 1_000_000
    assert insist(writer, entries) == (3_000 if is_over else 3_005)
    assert insist(writer, make_entries(10, 3_000)) == 10
    writer.close()
    assert writer.refused == ({TOO_LARGE: 5} if is_over else {})
    small = [payload for payload in payloads(topic, 2) if len(payload) < 100]
    assert sorted(small) == sorted(payload for _, payload in make_entries(3_010))


@pytest.mark.kafka
def test_what_shared_a_batch_with_something_too_large_is_appended(
    kafka: Broker,
) -> None:
    """Brokers refuse a batch whole; only what is too large by itself stays out."""
    topic = make_topic(kafka, 1, max_message_bytes="10000")
    large = (("compression.type", "none"), ("batch.size", "100000"))
    writer = KafkaLogWriter.open(replace(topic, options=large))
    entries = make_entries(100)
    entries[50] = (ISIN, b"x" * 12_000)
    assert insist(writer, entries) == 99
    assert writer.refused == {TOO_LARGE: 1}
    del entries[50]
    found = payloads(topic, 1)
    assert sorted(found) == sorted(payload for _, payload in entries)
    assert insist(writer, make_entries(5)) == 5
    writer.close()


@pytest.mark.kafka
def test_broker_killed_and_started_again_loses_and_doubles_nothing(
    own_kafka: Broker,
) -> None:
    """Across a power cut every event is in the topic once, in order."""
    topic = make_topic(own_kafka, 2)
    writer = KafkaLogWriter.open(topic)

    def cut_power() -> None:
        eventually(lambda: writer.tallies[0].acknowledged > 1_000, 30)
        own_kafka.kill()
        own_kafka.start()

    cut = threading.Thread(target=cut_power)
    cut.start()
    with capture_logs() as logs:
        report = feed_numbers(writer, 60_000, rate=20_000)
    cut.join()
    writer.close()
    assert (report.acknowledged, report.retried, report.in_doubt) == (60_000, 0, 0)
    assert {entry["event"] for entry in logs} == {
        "the log is silent, waiting",
        "append succeeded",
    }
    found = logged(topic, 2)
    numbers = [[int(m.value() or b"") for m in messages] for messages in found]
    assert all(each == sorted(each) for each in numbers)
    assert sorted(n for each in numbers for n in each) == list(range(60_000))


@pytest.mark.kafka
def test_frozen_broker_loses_and_doubles_nothing(own_kafka: Broker) -> None:
    """A silence longer than the client's own patience with a request."""
    topic = make_topic(own_kafka, 2)
    topic = replace(topic, options=(("request.timeout.ms", "2000"),))
    writer = KafkaLogWriter.open(topic)

    def freeze() -> None:
        eventually(lambda: writer.tallies[0].acknowledged > 1_000, 30)
        own_kafka.pause()
        time.sleep(6)
        own_kafka.resume()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    report = feed_numbers(writer, 60_000, rate=20_000)
    frozen.join()
    writer.close()
    assert (report.acknowledged, report.retried, report.in_doubt) == (60_000, 0, 0)
    assert report.max_lag_s > 5
    numbers = sorted(int(payload) for payload in payloads(topic, 2))
    assert numbers == list(range(60_000))


@pytest.mark.kafka
def test_stop_while_the_broker_is_frozen_leaves_doubt_that_is_told(
    own_kafka: Broker,
) -> None:
    """The feed ends soon; the topic has what was acknowledged, and maybe the rest."""
    topic = make_topic(own_kafka, 2)
    writer = KafkaLogWriter.open(topic)
    stop = threading.Event()

    def freeze() -> None:
        eventually(lambda: writer.tallies[0].acknowledged > 1_000, 30)
        own_kafka.pause()
        time.sleep(1.5)
        stop.set()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    with capture_logs() as logs:
        report = feed_numbers(writer, 1_000_000, rate=20_000, stop=stop)
        frozen.join()
        began = time.monotonic()
        writer.close()
    assert time.monotonic() - began < 3 * PATIENCE
    assert report.stopped
    assert report.seconds < 10 * PATIENCE
    assert report.in_doubt > 0
    assert logs[-1]["event"].startswith("gave up waiting for the log")
    assert logs[-1]["in_doubt"] == report.in_doubt
    own_kafka.resume()
    for messages, tally in zip(logged(topic, 2), writer.tallies, strict=True):
        numbers = [int(message.value() or b"") for message in messages]
        assert len(set(numbers)) == len(numbers)
        assert tally.acknowledged <= len(numbers) <= tally.acknowledged + tally.in_doubt
        assert messages[tally.acknowledged - 1].offset() == tally.last


@pytest.mark.kafka
def test_client_that_breaks_down_ends_the_feed_and_leaves_doubt(kafka: Broker) -> None:
    """Some faults librdkafka cannot get over: then nothing counts that is not sure."""
    topic = make_topic(kafka, 2, max_message_bytes="10000")
    # A way to make it break down: a gap is not allowed, and one message is too large.
    fragile = (("compression.type", "none"), ("enable.gapless.guarantee", "true"))
    writer = KafkaLogWriter(replace(topic, options=fragile), open_topic(topic))
    insist(writer, make_entries(10))
    entries = make_entries(20_000, 10)
    entries[10_000] = (ISIN, b"x" * 12_000)
    with pytest.raises(LogUnusable, match=f"topic '{topic.topic}' at .*gap-less"):
        insist(writer, entries)
    with pytest.raises(LogUnusable, match="Fatal error"):
        insist(writer, make_entries(10))
    writer.close()
    for messages, tally in zip(logged(topic, 2), writer.tallies, strict=True):
        assert tally.acknowledged <= len(messages)
        assert len(messages) <= tally.acknowledged + tally.in_doubt


@pytest.mark.kafka
def test_topic_deleted_under_a_feed_ends_it(kafka: Broker) -> None:
    """Nothing is appended to a topic that was made anew under the same name."""
    topic = make_topic(kafka, 1)
    impatient = (("topic.metadata.propagation.max.ms", "1000"),)
    writer = KafkaLogWriter.open(replace(topic, options=impatient))
    insist(writer, make_entries(10))
    admin = AdminClient(options(kafka))
    admin.delete_topics([topic.topic])[topic.topic].result(timeout=10)
    with pytest.raises(LogUnusable, match=f"kafka_topic {topic.topic}: does not exist"):
        insist(writer, make_entries(10))
    assert writer.tallies[0].acknowledged == 10
    writer.close()


@pytest.mark.kafka
def test_topic_that_is_not_there_is_told(kafka: Broker) -> None:
    """The sentence names the command that makes it."""
    with pytest.raises(LogUnusable, match=r"does not exist.*`tickthrottle topic`"):
        KafkaLogWriter.open(KafkaTopic(kafka.servers, "missing"))
