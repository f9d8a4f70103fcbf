"""The topics that windows and bars are relayed to: made if they are not there."""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.cimpl import NewTopic

from archive.storing.archive_sink import SinkRefused
from archive.topics.record_values import (
    BAR_TOPIC,
    LATEST_TOPIC,
    ROW_TOPIC,
    WINDOW_TOPIC,
)
from archive.topics.relayed_records import said_in
from tickthrottle_client.kafka_client import (
    Reports,
    answer,
    create_admin,
    create_reader,
    describe,
    sentence,
)
from tickthrottle_client.kafka_topic import KafkaTopic
from tickthrottle_client.log_v1 import LogUnusable

ORDERED = (WINDOW_TOPIC, BAR_TOPIC)
"""Topics of one partition: their records are in the order of their log."""

ALL = (*ORDERED, ROW_TOPIC, LATEST_TOPIC)

ANSWER_S = 10.0


@dataclass(frozen=True, slots=True)
class RelayTopics:
    """Where they are, how to reach them, and what their names begin with.

    Methods raise LogAway and LogUnusable.
    """

    servers: str
    prefix: str
    options: tuple[tuple[str, str], ...] = ()

    def topic(self, kind: str) -> KafkaTopic:
        """Return one of them: ``<prefix>.<kind>``."""
        return KafkaTopic(self.servers, f"{self.prefix}.{kind}", self.options)

    def make(self) -> None:
        """Make those that are not there.

        Those of windows and of bars have one partition, ``latest`` is compacted, and
        the others are as brokers make topics. What is there stays as it is; if it
        cannot be used so, it is refused.
        """
        reports = Reports()
        admin = create_admin(self.topic(WINDOW_TOPIC), reports)
        topics = [
            NewTopic(
                self.topic(kind).topic,
                num_partitions=1 if kind in ORDERED else -1,
                config={"cleanup.policy": "compact"} if kind == LATEST_TOPIC else {},
            )
            for kind in ALL
        ]
        made = admin.create_topics(topics, request_timeout=ANSWER_S)
        for kind, future in zip(ALL, made.values(), strict=True):
            topic = self.topic(kind)
            try:
                answer(topic, future, reports)
            except LogUnusable:
                # There already, or not to be made by this user.
                partitions = len(answer(topic, describe(topic, admin)).partitions)
                if kind in ORDERED and partitions != 1:
                    raise SinkRefused(
                        f"{topic}: has {partitions} partitions, and must have 1: its "
                        "records are in the order of their log. Delete it, or name "
                        "another prefix (archive_topics)"
                    ) from None

    def last(self, kind: str) -> Message | None:
        """Return the last record of an ordered topic that is committed, if any."""
        with closing(TopicReader(self.topic(kind))) as reader:
            low, high = reader.bounds(0)
            back = 2
            while low < high:
                begin = max(low, high - back)
                found = list(reader.read(0, begin, high))
                if found:
                    return found[-1]
                if begin == low:
                    break
                # Only marks of transactions, or records of such as were given up.
                back *= 4
        return None

    def records(self, kind: str, first_ms: int, last_ms: int) -> Iterator[Message]:
        """Yield the committed records of windows, or bars, that end between the two.

        Raises SinkRefused for a record of somebody else.
        """
        with closing(TopicReader(self.topic(kind))) as reader:
            for partition in reader.partitions():
                _, high = reader.bounds(partition)
                begin = reader.offset_at(partition, first_ms)
                for message in reader.read(partition, begin, high):
                    end = said_in(message.headers(), "window")
                    if not end.isdigit():
                        raise SinkRefused(
                            f"{self.topic(kind)}: record {message.offset()} of "
                            f"partition {partition} is none of an archive's"
                        )
                    if first_ms <= int(end) <= last_ms:
                        yield message


class TopicReader:
    """Reads what is committed of one topic. Methods raise LogAway and LogUnusable."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._reports = Reports()
        self._consumer = create_reader(topic, self._reports)

    def partitions(self) -> list[int]:
        with self._asking():
            found = self._consumer.list_topics(self._topic.topic, ANSWER_S)
            described = found.topics[self._topic.topic]
            if described.error is not None:
                raise KafkaException(described.error)
            return sorted(described.partitions)

    def bounds(self, partition: int) -> tuple[int, int]:
        """Return the first offset that is left, and the end."""
        place = TopicPartition(self._topic.topic, partition)
        with self._asking():
            low, high = self._consumer.get_watermark_offsets(place, ANSWER_S)
            return low, high

    def offset_at(self, partition: int, time_ms: int) -> int:
        """Return the first offset of that time or later, the end if there is none."""
        place = TopicPartition(self._topic.topic, partition, max(time_ms, 0))
        with self._asking():
            [found] = self._consumer.offsets_for_times([place], ANSWER_S)
        return found.offset if found.offset >= 0 else self.bounds(partition)[1]

    def read(self, partition: int, begin: int, end: int) -> Iterator[Message]:
        """Yield the records from an offset on, before another."""
        with self._asking():
            place = TopicPartition(self._topic.topic, partition, begin)
            self._consumer.assign([place])
            until_s = time.monotonic() + ANSWER_S
            while begin < end:
                message = self._consumer.poll(0.5)
                if message is None:
                    if time.monotonic() > until_s:
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
                    continue
                until_s = time.monotonic() + ANSWER_S
                if (error := message.error()) is not None:
                    if error.code() == KafkaError._PARTITION_EOF:
                        return
                    raise KafkaException(error)
                begin = (message.offset() or 0) + 1
                if begin <= end:
                    yield message

    def close(self) -> None:
        self._consumer.close()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            raise sentence(self._topic, error.args[0], self._reports) from None
