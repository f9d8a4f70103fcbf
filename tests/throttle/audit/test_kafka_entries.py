"""The past of a log in a topic of Kafka, from a real broker."""

import time
from collections.abc import Callable
from itertools import pairwise

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from ingest.kafka.address import KafkaTopic
from ingest.kafka.kafka_log_reader import KafkaLogReader
from tests.kafka_broker.broker import Broker
from tests.throttle.topic_job import make_log
from throttle.audit.kafka_entries import KafkaLogEntries, backwards, forwards
from throttle.audit.log_entries import open_log_entries
from throttle.audit.reconcile import EntryCount


def produce(topic: KafkaTopic, partition: int, count: int) -> None:
    """Append numbered entries."""
    producer = Producer(topic.client_options({}))
    for n in range(count):
        producer.produce(topic.topic, b"%d" % n, partition=partition)
    assert producer.flush(30) == 0


def delete(topic: KafkaTopic, partition: int, before: int) -> None:
    """Delete a partition's oldest entries, as retention does."""
    admin = AdminClient(topic.client_options({}))
    asked = admin.delete_records([TopicPartition(topic.topic, partition, before)])
    for future in asked.values():
        future.result(30)


def past_of(topic: KafkaTopic) -> KafkaLogEntries:
    """Open the past of a topic."""
    # Without Redis: what is in the topic, the topic alone knows.
    found = open_log_entries(None, "tt", topic)  # type: ignore[arg-type]
    assert isinstance(found, KafkaLogEntries)
    return found


@pytest.mark.parametrize("cut", [forwards, backwards])
def test_pieces_cover_a_range_once(
    cut: Callable[[int, int], list[tuple[int, int]]],
) -> None:
    """From either end, the first ones small."""
    for span in ((-1, 0), (-1, 255), (4, 100_000)):
        pieces = list(cut(*span))
        ordered = pieces if cut is forwards else pieces[::-1]
        assert all(one[1] == other[0] for one, other in pairwise(ordered))
        assert (ordered[0][0], ordered[-1][1]) == span
        assert pieces[0][1] - pieces[0][0] <= 256
    assert not [*cut(7, 7), *cut(9, 3)]


@pytest.mark.kafka
def test_entries_come_in_order_of_time_from_either_end(kafka: Broker) -> None:
    """Of all partitions, more than one piece, none twice."""
    topic = make_log(kafka, 3)
    produce(topic, 0, 700)
    produce(topic, 2, 300)
    produce(topic, 0, 5)
    past = past_of(topic)
    found = list(past.trades([0, 1, 2], {}))
    assert len({(e.partition, e.position) for e in found}) == len(found) == 1_005
    assert [e.append_ms for e in found] == sorted(e.append_ms for e in found)
    assert list(past.trades([0, 1, 2], {}, newest_first=True)) == found[::-1]
    some = list(past.trades([0], {0: 700}))
    assert [(e.position, e.payload) for e in some] == [
        (701 + n, b"%d" % (n + 1)) for n in range(4)
    ]
    assert [e.position for e in past.trades([2], {2: -1})] == list(range(300))


@pytest.mark.kafka
def test_a_moment_is_a_place_in_every_partition(kafka: Broker) -> None:
    """The last position before it; of a moment to come, the end."""
    topic = make_log(kafka, 2)
    produce(topic, 0, 4)
    past = past_of(topic)
    [first, *_, last] = past.trades([0, 1], {})
    assert past.positions_before(first.append_ms, [0, 1]) == {0: -1, 1: -1}
    later = past.positions_before(last.append_ms + 60_000, [0])
    assert later == {0: 3}
    assert past.append_ms(0, 3) == last.append_ms
    assert past.append_ms(0, 4) is past.append_ms(1, 0) is None


@pytest.mark.kafka
def test_what_retention_has_deleted_is_gone_and_counted(kafka: Broker) -> None:
    """The front, the time of an entry, the number of those that are left."""
    topic = make_log(kafka, 3)
    produce(topic, 0, 10)
    produce(topic, 1, 3)
    delete(topic, 0, 4)
    delete(topic, 1, 3)
    past = past_of(topic)
    fronts = past.fronts([0, 1, 2])
    assert {p: front and front.position for p, front in fronts.items()} == {
        0: 4,
        1: None,
        2: None,
    }
    assert past.append_ms(0, 3) is None
    assert past.append_ms(0, 4) is not None
    assert past.count({0: [-1, 6], 1: [1], 2: []}) == {
        0: EntryCount(4, 3, True, 6, {-1: 0, 6: 3}),
        1: EntryCount(3, 2, True, 0, {1: 0}),
        2: EntryCount(0, -1, True, 0, {}),
    }
    assert past.count({0: [7]})[0].entries == 2


class Deleting(KafkaLogReader):
    """A reader that comes too late for some entries."""

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Tell the ends, then have entries deleted."""
        found = super().bounds()
        delete(self._topic, 0, 6)
        return found


@pytest.mark.kafka
def test_what_is_deleted_while_it_is_counted_is_gone(kafka: Broker) -> None:
    """It is neither held nor a blank."""
    topic = make_log(kafka, 1)
    produce(topic, 0, 10)
    past = past_of(topic)
    past._reader = Deleting(topic, past.info)
    [stock] = past.count({0: [-1, 8]}).values()
    assert stock == EntryCount(6, 5, True, 4, {-1: 0, 8: 3})
    assert stock.blanks(-1, 8) == 0


@pytest.mark.kafka
def test_marks_of_transactions_are_blanks(kafka: Broker) -> None:
    """What was committed is there, what was aborted is not."""
    topic = make_log(kafka, 1)
    producer = Producer(topic.client_options({"transactional.id": topic.topic}))
    producer.init_transactions(30)
    for is_kept in (True, False, True):
        producer.begin_transaction()
        producer.produce(topic.topic, b"x", partition=0)
        producer.produce(topic.topic, b"y", partition=0)
        end = producer.commit_transaction if is_kept else producer.abort_transaction
        end(30)
    deadline = time.monotonic() + 10
    past = past_of(topic)
    while (stock := past.count({0: [-1, 8]})[0]).entries < 4:
        assert time.monotonic() < deadline
    assert (stock.entries, stock.blanks(-1, 8)) == (4, 5)
    assert past.fronts([0])[0] is not None
