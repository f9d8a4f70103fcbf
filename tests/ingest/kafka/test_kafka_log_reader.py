"""A topic of a real broker read as a trade log: cuts, gaps, whatever stamps it has."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from ingest.kafka.address import KafkaTopic
from ingest.kafka.kafka_log_reader import AHEAD_MS, KafkaLogReader
from ingest.tradelog.contract import LogAway, LogUnusable
from tests.conftest import eventually
from tests.kafka import make_topic, options, sasl_options
from tests.kafka_broker.broker import Broker
from tests.speedups import BOTH_WAYS
from tickthrottle_client.kafka_client import open_topic

pytestmark = pytest.mark.kafka

STAMPED = {"message_timestamp_type": "LogAppendTime"}
DAY_MS = 86_400_000


def topic_of(broker: Broker, partitions: int = 2, **config: str) -> KafkaTopic:
    """Create a topic and return where it is."""
    return KafkaTopic(broker.servers, make_topic(broker, partitions, **config))


class ReaderOf(Protocol):
    """Returns a reader of a topic as it is now."""

    def __call__(
        self, topic: KafkaTopic, *only: int, margin_ms: int = 0
    ) -> KafkaLogReader: ...


@pytest.fixture(params=BOTH_WAYS)
def reader_of(request: pytest.FixtureRequest) -> ReaderOf:
    """What opens readers, with and without the compiled package."""

    def open_reader(
        topic: KafkaTopic, *only: int, margin_ms: int = 0
    ) -> KafkaLogReader:
        info = open_topic(topic)
        return KafkaLogReader(topic, info, only, margin_ms, speedups=request.param)

    return open_reader


def append(
    broker: Broker, topic: KafkaTopic, values: Mapping[int, list[bytes | None]]
) -> None:
    """Append values to partitions."""
    producer = Producer(options(broker))
    for partition, many in values.items():
        for value in many:
            producer.produce(topic.topic, value, partition=partition)
    assert producer.flush(20) == 0


def stamp(
    broker: Broker, topic: KafkaTopic, stamps_ms: list[int], partition: int = 0
) -> None:
    """Append an entry for each stamp."""
    producer = Producer(options(broker))
    for ms in stamps_ms:
        producer.produce(topic.topic, b"%d" % ms, partition=partition, timestamp=ms)
    assert producer.flush(20) == 0


def read_all(
    reader: KafkaLogReader, ranges: Mapping[int, tuple[int, int]]
) -> tuple[dict[int, list[bytes]], dict[int, int]]:
    """Return the payloads and the blanks of each partition; check the positions."""
    payloads: dict[int, list[bytes]] = {p: [] for p in ranges}
    blanks = dict.fromkeys(ranges, 0)
    reached = {p: after for p, (after, _) in ranges.items()}
    for p, chunk in reader.read(ranges):
        positions = chunk.positions.to_pylist()
        assert positions == sorted(set(positions))
        assert all(reached[p] < at <= chunk.upto for at in positions)
        payloads[p] += chunk.payloads.to_pylist()
        blanks[p] += chunk.blanks
        reached[p] = chunk.upto
    assert reached == {p: upto for p, (_, upto) in ranges.items()}
    return payloads, blanks


def now_ms() -> int:
    """Return this machine's clock, which is also the broker's."""
    return time.time_ns() // 1_000_000


def test_an_empty_topic_has_nothing_before_and_nothing_after(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """A job may start before the first trade."""
    reader = reader_of(topic_of(kafka))
    head, tail = reader.head(), reader.tail(now_ms())
    assert (head.oldest_ms, head.partitions) == (None, (0, 1))
    assert head.positions == tail.positions == (-1, -1)
    assert head.counts == tail.counts == (0, 0)
    assert list(reader.read({0: (-1, -1)})) == []


def test_positions_are_offsets_and_a_range_is_read_exactly(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Never lost: after one position, up to another, each partition in order."""
    topic = topic_of(kafka)
    many = [b"%d" % n for n in range(1_000)]
    append(kafka, topic, {0: many, 1: many[:3]})
    reader = reader_of(topic)
    assert reader.bounds() == {0: (-1, 999), 1: (-1, 2)}
    payloads, blanks = read_all(reader, {0: (9, 20), 1: (-1, 2)})
    assert payloads == {0: many[10:21], 1: many[:3]}
    assert blanks == {0: 0, 1: 0}
    assert read_all(reader, {0: (-1, 999)})[0] == {0: many}


def test_a_boundary_cuts_before_the_first_entry_at_or_past_it(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """The same log gives the same windows: positions follow from the stamps."""
    topic = topic_of(kafka, 1, **STAMPED)
    append(kafka, topic, {0: [b"a", b"b"]})
    before_ms = now_ms() + 1
    eventually(lambda: now_ms() > before_ms)
    append(kafka, topic, {0: [b"c"]})
    reader = reader_of(topic)
    tail = reader.tail(before_ms)
    assert (tail.positions, tail.counts) == ((1,), (2,))
    assert tail.clock_ms >= before_ms
    assert reader.tail(now_ms() + DAY_MS).positions == (2,)
    head = reader.head()
    assert head.oldest_ms is not None
    assert head.oldest_ms < before_ms
    assert reader.positions_at(before_ms) == {0: 1}


def test_the_margin_holds_the_clock_back(kafka: Broker, reader_of: ReaderOf) -> None:
    """What a broker stamps a little late is still in its window."""
    reader = reader_of(topic_of(kafka), margin_ms=5_000)
    assert now_ms() - 6_000 < reader.clock_ms() <= now_ms() - 5_000
    assert reader.tail(now_ms()).clock_ms <= now_ms() - 5_000


def test_an_entry_past_the_boundary_in_every_partition_ends_the_margin(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Whatever is appended after it is behind the cut."""
    topic = topic_of(kafka, **STAMPED)
    reader = reader_of(topic, margin_ms=60_000)
    append(kafka, topic, {0: [b"a"], 1: [b"b"]})
    before_ms = now_ms() + 1
    eventually(lambda: now_ms() > before_ms)
    append(kafka, topic, {0: [b"c"]})
    half = reader.tail(before_ms)
    assert (half.positions, half.clock_ms < before_ms) == ((0, 0), True)
    append(kafka, topic, {1: [b"d", b"e"]})
    whole = reader.tail(before_ms)
    assert (whole.positions, whole.clock_ms) == ((0, 0), before_ms)
    assert reader_of(topic, 0, margin_ms=60_000).tail(before_ms).clock_ms == before_ms


def test_a_producer_ahead_of_the_clock_ends_no_window_early(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """A boundary has to have passed by this machine's clock, too."""
    topic = topic_of(kafka, 1)
    now = now_ms()
    # As far ahead as a stamp is believed: the boundary must not have passed by then.
    stamp(kafka, topic, [now, now + AHEAD_MS])
    boundary_ms = now + AHEAD_MS - 100
    tail = reader_of(topic, margin_ms=30).tail(boundary_ms)
    assert (tail.positions, tail.clock_ms < boundary_ms) == ((0,), True)


def test_what_producers_stamp_is_cut_at_the_first_entry_past_the_boundary(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """An entry stamped earlier than one before it becomes a straggler."""
    topic = topic_of(kafka, 1)
    now = now_ms() - 60_000
    stamp(kafka, topic, [now, now + 10, now + 2_000, now + 20, now + 2_001])
    reader = reader_of(topic)
    assert reader.tail(now + 1_000).positions == (1,)
    assert reader.tail(now + 3_000).positions == (4,)


def test_an_entry_stamped_far_ahead_does_not_hold_its_partition_up(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Prompt: a producer with a wrong clock costs nobody else anything."""
    topic = topic_of(kafka, 1)
    now = now_ms()
    stamp(kafka, topic, [now, now + AHEAD_MS + 60_000, now + 1, now + 2])
    reader = reader_of(topic)
    assert reader.tail(now + 1).positions == (3,)
    assert reader.tail(now).positions == (-1,)


def test_only_some_partitions_are_looked_at(kafka: Broker, reader_of: ReaderOf) -> None:
    """Several jobs share a topic."""
    topic = topic_of(kafka, 4)
    append(kafka, topic, {1: [b"a"], 3: [b"b", b"c"]})
    reader = reader_of(topic, 1, 3)
    tail = reader.tail(now_ms() + DAY_MS)
    assert (tail.partitions, tail.positions) == ((1, 3), (0, 1))
    assert reader.head().partitions == (1, 3)
    assert set(reader.bounds()) == {1, 3}


def test_a_partition_added_later_is_found(kafka: Broker, reader_of: ReaderOf) -> None:
    """Never lost: a topic that grows is read whole."""
    topic = topic_of(kafka, 1)
    reader, fixed = reader_of(topic), reader_of(topic, 0)
    assert reader.tail(now_ms()).partitions == (0,)
    admin = AdminClient(options(kafka))
    admin.create_partitions([NewPartitions(topic.topic, 3)])[topic.topic].result()
    eventually(lambda: reader.tail(now_ms()).partitions == (0, 1, 2))
    append(kafka, topic, {2: [b"new"]})
    assert reader.tail(now_ms() + DAY_MS).positions == (-1, -1, 0)
    assert read_all(reader, {2: (-1, 0)})[0] == {2: [b"new"]}
    assert fixed.tail(now_ms()).partitions == (0,)


def test_a_partition_that_a_client_has_not_heard_of_is_waited_for(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Who plans a batch may hear of it before who reads it does: never an end."""
    topic, admin = topic_of(kafka), AdminClient(options(kafka))
    planner, task = reader_of(topic), reader_of(topic)
    planner.partitions()
    task.tail(0)
    for count in range(3, 23):
        new = NewPartitions(topic.topic, count)
        admin.create_partitions([new])[topic.topic].result()
        eventually(lambda count=count: count == len(answered(planner.partitions)))
        append(kafka, topic, {count - 1: [b"new"]})
        wanted = tuple(range(count))
        tail = eventually(lambda wanted=wanted: answered(lambda: task.tail(0, wanted)))
        assert tail.partitions == wanted
        eventually(
            lambda last=count - 1: answered(lambda: read_all(task, {last: (-1, 0)}))
        )


def test_a_partition_that_is_not_there_is_not_a_topic_that_is_not_there(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """It may come; of a topic that is gone the job says so."""
    topic = topic_of(kafka)
    reader = reader_of(topic)
    for ask in (lambda: reader.tail(0, (0, 5)), lambda: read_all(reader, {5: (-1, 0)})):
        with pytest.raises(LogAway, match="a partition is not known everywhere yet"):
            ask()


def answered(ask: Callable[[], Any]) -> Any:
    """Return an answer, nothing while the log is away."""
    try:
        return ask()
    except LogAway:
        return ()


def test_what_retention_deleted_is_passed_over_and_is_no_blank(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Accounted: the ledger counts those offsets, and nothing was read there."""
    topic = topic_of(kafka)
    append(kafka, topic, {0: [b"%d" % n for n in range(10)], 1: [b"x"] * 5})
    delete_before(kafka, topic, 4)
    reader = reader_of(topic)
    assert reader.head().positions == (3, -1)
    assert reader.head().counts == (4, 0)
    payloads, blanks = read_all(reader, {0: (1, 7), 1: (-1, 4)})
    assert payloads[0] == [b"4", b"5", b"6", b"7"]
    assert len(payloads[1]) == 5
    assert blanks == {0: 0, 1: 0}
    # Nothing at all is left of this range.
    assert read_all(reader, {0: (0, 2)}) == ({0: []}, {0: 0})


def delete_before(broker: Broker, topic: KafkaTopic, offset: int) -> None:
    """Delete the beginning of partition 0."""
    place = TopicPartition(topic.topic, 0, offset)
    admin = AdminClient(options(broker))
    [deleted] = admin.delete_records([place]).values()
    assert deleted.result().low_watermark == offset


def test_transactions_are_read_once_committed_and_never_if_aborted(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Latest: what a producer took back never was; its markers are blanks."""
    topic = topic_of(kafka, 1)
    producer = Producer(options(kafka, **{"transactional.id": topic.topic}))
    producer.init_transactions(20)
    for value, is_meant in ((b"a", True), (b"b", False), (b"c", True)):
        producer.begin_transaction()
        producer.produce(topic.topic, value)
        producer.flush(20)
        end = producer.commit_transaction if is_meant else producer.abort_transaction
        end(20)
    reader = reader_of(topic)
    # Three values, three markers.
    assert reader.tail(now_ms() + DAY_MS).positions == (5,)
    assert read_all(reader, {0: (-1, 5)}) == ({0: [b"a", b"c"]}, {0: 4})
    producer.begin_transaction()
    producer.produce(topic.topic, b"not yet")
    producer.flush(20)
    assert reader.tail(now_ms() + DAY_MS).positions == (5,)
    producer.commit_transaction(20)
    # The marker follows a moment later.
    eventually(lambda: reader.tail(now_ms() + DAY_MS).positions == (7,))
    dirty = KafkaTopic(
        topic.servers, topic.topic, (("isolation.level", "read_uncommitted"),)
    )
    assert read_all(reader_of(dirty), {0: (-1, 7)})[0] == {
        0: [b"a", b"b", b"c", b"not yet"]
    }


def test_a_compacted_topic_is_read_around_its_holes(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Accounted: an entry whose key came again is a blank, not a loss."""
    config = {
        "cleanup_policy": "compact",
        "segment_ms": "100",
        "min_cleanable_dirty_ratio": "0.01",
        "max_compaction_lag_ms": "200",
    }
    topic = topic_of(kafka, 1, **config)
    producer = Producer(options(kafka))
    reader = reader_of(topic)

    def has_holes() -> bool:
        # Only a segment that is no longer written to is cleaned.
        producer.produce(topic.topic, b"new", b"key")
        producer.flush(20)
        last = reader.bounds()[0][1]
        payloads, blanks = read_all(reader, {0: (-1, last)})
        assert len(payloads[0]) + blanks[0] == last + 1
        return blanks[0] > 0

    eventually(has_holes, 60)


def test_tombstones_null_keys_and_headers_are_entries(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Bad input loses nothing else: they are refused further on, as empty."""
    topic = topic_of(kafka, 1)
    producer = Producer(options(kafka))
    producer.produce(topic.topic, None, b"key")
    producer.produce(topic.topic, b"value", None)
    producer.produce(topic.topic, None, None, headers={"only": b"this"})
    producer.flush(20)
    assert read_all(reader_of(topic), {0: (-1, 2)})[0] == {0: [b"", b"value", b""]}


def test_a_topic_made_again_is_refused(kafka: Broker, reader_of: ReaderOf) -> None:
    """Never backwards: positions of another topic mean nothing in this one."""
    topic = topic_of(kafka, 1)
    reader = reader_of(topic)
    reader.tail(now_ms())
    admin = AdminClient(options(kafka))
    admin.delete_topics([topic.topic])[topic.topic].result()
    eventually(lambda: topic.topic not in admin.list_topics(timeout=5).topics)
    with pytest.raises(LogUnusable, match=f"{topic.topic}: does not exist"):
        reader.tail(now_ms())
    admin.create_topics([NewTopic(topic.topic, 1, 1)])[topic.topic].result()
    eventually(lambda: topic.topic in admin.list_topics(timeout=5).topics)

    def is_known() -> str:
        try:
            reader.tail(now_ms())
        except LogAway:
            # It has no leader yet.
            return ""
        except LogUnusable as error:
            return str(error)
        raise AssertionError("another topic is not told")

    assert "was deleted and made again" in eventually(is_known)


def test_a_partition_that_ends_too_soon_is_waited_for(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Never lost: a broker that has not got everything yet is asked again."""
    topic = topic_of(kafka, 1)
    append(kafka, topic, {0: [b"a", b"b"]})
    reader = reader_of(topic)
    with pytest.raises(LogAway, match="ends at 2, but 9 was there before"):
        list(reader.read({0: (-1, 9)}))
    with pytest.raises(LogAway, match="ends before 9, which was there before"):
        list(reader.read({0: (8, 9)}))
    # It can be used on.
    assert read_all(reader, {0: (-1, 1)})[0] == {0: [b"a", b"b"]}


def test_a_reader_given_up_half_way_can_be_used_again(
    kafka: Broker, reader_of: ReaderOf
) -> None:
    """Spark may stop a task at any time."""
    topic = topic_of(kafka, 1)
    append(kafka, topic, {0: [b"%d" % n for n in range(30_000)]})
    reader = reader_of(topic)
    chunks = reader.read({0: (-1, 29_999)})
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    assert read_all(reader, {0: (5, 6)})[0] == {0: [b"6"]}


def test_a_wrong_password_is_one_sentence_without_it(kafka: Broker) -> None:
    """Access refused is told as such, and the password is not."""
    given = {n: v for n, v in sasl_options(kafka, "wrong-horse").items() if "." in n}
    del given["bootstrap.servers"]
    topic = KafkaTopic(kafka.sasl_servers, "any", tuple(given.items()))
    with pytest.raises(LogUnusable, match="access refused") as refused:
        open_topic(topic)
    assert "wrong-horse" not in str(refused.value)


def test_the_right_password_reads(kafka: Broker, reader_of: ReaderOf) -> None:
    """SASL options are passed through."""
    plain = topic_of(kafka, 1)
    append(kafka, plain, {0: [b"a"]})
    given = sasl_options(kafka, kafka.password)
    del given["bootstrap.servers"], given["log_level"]
    topic = KafkaTopic(kafka.sasl_servers, plain.topic, tuple(given.items()))
    assert read_all(reader_of(topic), {0: (-1, 0)})[0] == {0: [b"a"]}


def test_a_broker_that_comes_back_is_read_on(
    own_kafka: Broker, reader_of: ReaderOf
) -> None:
    """Never lost: killed in the middle, everything is there afterwards."""
    topic = topic_of(own_kafka, 1)
    append(own_kafka, topic, {0: [b"a"]})
    reader = reader_of(topic)
    assert reader.tail(now_ms() + DAY_MS).positions == (0,)
    own_kafka.kill()
    with pytest.raises(LogAway):
        reader.tail(now_ms())
    with pytest.raises(LogAway):
        list(reader.read({0: (-1, 0)}))
    own_kafka.start()

    def is_back() -> bool:
        assert reader.tail(now_ms() + DAY_MS).positions == (0,)
        return read_all(reader, {0: (-1, 0)})[0] == {0: [b"a"]}

    eventually(lambda: answered(is_back), 30)
