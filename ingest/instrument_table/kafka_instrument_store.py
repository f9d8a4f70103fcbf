"""The instrument table in a topic of Kafka: compacted, of one partition.

A message is a change: its key is the ISIN, its value the instrument
(``instrument_store.py``), without a value the instrument has ended. Compaction keeps
the newest of each ISIN, which is the table. A change's version is the offset behind it.
"""

import time
from collections.abc import Sequence
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.cimpl import NewTopic

from ingest.instrument_table.instrument_entry import BadInstruments, InstrumentEntry
from ingest.instrument_table.instrument_store import (
    PAGE,
    ChangePage,
    InstrumentChange,
    TableAway,
    TableLost,
    TableMoved,
    decode_change,
    encode_instrument,
)
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable
from tickthrottle_client.kafka_client import (
    ANSWER_WITHIN_S,
    Reports,
    TopicMissing,
    answer,
    create_admin,
    create_client,
    create_reader,
    describe,
    identity,
    sentence,
)

PAGE_WITHIN_S = 10.0
"""Brokers that have not given a page after this long are away."""

COMMIT_WITHIN_S = 30.0

_FENCED = (
    *(KafkaError._FENCED, KafkaError.INVALID_PRODUCER_EPOCH),
    KafkaError.PRODUCER_FENCED,
)
_KNOWN_WITHIN_S = 5.0


class KafkaInstrumentStore:
    """The table in a topic: an ``InstrumentStore``. Raises LogUnusable like a log."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._reports = Reports()
        self._admin = create_admin(topic, self._reports)
        self._consumer = create_reader(topic, self._reports)
        self._id: str | None = None
        # Where the topic ended when it was read last, and up to which version.
        self._read_upto = (0, 0)

    def read(self, after: int) -> ChangePage:
        table_id = self._identify()
        before, self._id = self._id, table_id
        try:
            if table_id is not None:
                return self._read(after, is_other=before not in (None, table_id))
        except TopicMissing:
            # Deleted since its identity was asked for.
            self._id = None
        if after:
            raise TableLost
        return ChangePage([], 0, True, 0)

    def _read(self, after: int, *, is_other: bool) -> ChangePage:
        low, high = self._ends()
        if after and (high < after or is_other):
            raise TableLost
        if high == low or (high, after) == self._read_upto:
            return ChangePage([], after, True, 0)
        return self._read_page(max(after, low))

    def append(
        self, changes: Sequence[tuple[str, InstrumentEntry | None]], after: int
    ) -> int:
        if not changes:
            return after
        if self._identify() is None:
            self._create()
        options = {
            # One of a name at a time: a second loader ends the first one's work.
            "transactional.id": f"tickthrottle-instruments-{self._topic.topic}",
            "error_cb": self._reports,
        }
        producer = create_client(Producer, self._topic, options)
        offsets: list[int] = []
        try:
            producer.init_transactions(COMMIT_WITHIN_S)
            news = self.read(after)
            if news.changes or news.refused or not news.is_last:
                raise TableMoved
            producer.begin_transaction()
            for isin, entry in changes:
                producer.produce(
                    self._topic.topic,
                    key=isin.encode(),
                    value=encode_instrument(entry) or None,
                    partition=0,
                    on_delivery=lambda _, m: offsets.append(m.offset() or 0),
                )
                producer.poll(0)
            producer.commit_transaction(COMMIT_WITHIN_S)
        except BufferError:
            raise TableAway(f"the brokers of {self._topic} take no more") from None
        except KafkaException as error:
            raise self._in_our_words(error.args[0]) from None
        version = max(offsets) + 1
        # A transaction can be read a moment after its commit is acknowledged.
        deadline_s = time.monotonic() + _KNOWN_WITHIN_S
        while self._ends()[1] < version and time.monotonic() < deadline_s:
            time.sleep(0.01)
        return version

    def close(self) -> None:
        self._consumer.close()

    def _identify(self) -> str | None:
        asked = describe(self._topic, self._admin)
        try:
            cause = asked.exception(timeout=2 * ANSWER_WITHIN_S)
        except TimeoutError:
            cause = None
        refusal = cause.args[0] if cause is not None and cause.args else None
        if isinstance(refusal, KafkaError):
            if refusal.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise self._in_our_words(refusal)
        info = identity(self._topic, self._answer(asked))
        if info.partitions != 1:
            raise LogUnusable(
                f"kafka_instruments_topic {self._topic.topic}: has {info.partitions} "
                "partitions, the instrument table has one"
            )
        return info.log_id

    def _create(self) -> None:
        new = NewTopic(self._topic.topic, 1, -1, config={"cleanup.policy": "compact"})
        asked = self._admin.create_topics([new], request_timeout=ANSWER_WITHIN_S)
        self._answer(asked[self._topic.topic])
        deadline_s = time.monotonic() + _KNOWN_WITHIN_S
        while self._identify() is None:
            if time.monotonic() > deadline_s:
                raise TableAway(f"{self._topic} does not show up")
            time.sleep(0.05)

    def _ends(self) -> tuple[int, int]:
        place = TopicPartition(self._topic.topic, 0)
        try:
            ends = self._consumer.get_watermark_offsets(place, ANSWER_WITHIN_S)
        except KafkaException as error:
            raise self._in_our_words(error.args[0]) from None
        if ends is None:
            raise TableAway(f"no Kafka broker answers at {self._topic.servers}")
        return ends

    def _read_page(self, begin: int) -> ChangePage:
        place = TopicPartition(self._topic.topic, 0, begin or OFFSET_BEGINNING)
        self._consumer.assign([place])
        changes: list[InstrumentChange] = []
        refused, version, is_last = 0, begin, False
        deadline_s = time.monotonic() + PAGE_WITHIN_S
        try:
            while len(changes) < PAGE and not is_last:
                if time.monotonic() > deadline_s:
                    raise TableAway(f"no Kafka broker answers at {self._topic.servers}")
                for message in self._consumer.consume(PAGE - len(changes), 0.5):
                    error = message.error()
                    if error is not None and error.code() == KafkaError._PARTITION_EOF:
                        is_last = True
                        self._read_upto = message.offset() or 0, version
                    elif error is not None:
                        raise self._in_our_words(error)
                    else:
                        version = (message.offset() or 0) + 1
                        key, value = message.key() or b"", message.value()
                        changed_ms = max(message.timestamp()[1], 0)
                        try:
                            changes.append(
                                decode_change(version, key, value, changed_ms)
                            )
                        except BadInstruments:
                            refused += 1
        except KafkaException as error:
            raise self._in_our_words(error.args[0]) from None
        finally:
            self._consumer.unassign()
        return ChangePage(changes, version, is_last, refused)

    def _answer(self, asked: Any) -> Any:
        try:
            return answer(self._topic, asked, self._reports)
        except LogAway as error:
            raise TableAway(str(error)) from None

    def _in_our_words(self, error: KafkaError) -> Exception:
        if error.code() in _FENCED:
            return TableMoved()
        fault = sentence(self._topic, error, self._reports)
        return TableAway(str(fault)) if isinstance(fault, LogAway) else fault
