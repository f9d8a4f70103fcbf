"""Relays windows and bars into topics of Kafka, a transaction for each segment.

Where it goes on is what the topics say: the last committed record of windows, and of
bars, names all that was relayed. So a consumer that reads what is committed gets each
window once and in order, whatever is killed.
"""

from collections.abc import Callable

from confluent_kafka import KafkaError, KafkaException, Producer

from archive.contract.segment import Coverage, Product, Segment
from archive.parquet.bar_table import StoredBars
from archive.parquet.status_table import StoredStatuses
from archive.parquet.tables import StoredTables
from archive.storing.archive_sink import Sink, SinkAway, SinkRefused
from archive.topics.record_values import (
    BAR_TOPIC,
    ROW_TOPIC,
    WINDOW_TOPIC,
    AvroValues,
    JsonValues,
    ValueForm,
    avro_schema_of,
)
from archive.topics.relay_topics import ALL, RelayTopics
from archive.topics.relayed_records import (
    Record,
    read_relayed,
    records_of,
    with_segment,
)
from tickthrottle_client.kafka_client import Reports, create_client, sentence
from tickthrottle_client.log_v1 import LogError

COMMIT_S = 20.0
"""A transaction that is not committed by then is tried again; no call takes longer."""

_FULL_S = 1.0
_FENCED = frozenset(
    {
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    }
)
_TOPIC_OF: dict[Product, str] = {"windows": WINDOW_TOPIC, "bars": BAR_TOPIC}


class KafkaSink(Sink):
    """The archive in topics.

    ``name`` is the archive's: ``open`` ends the transactions of another process of it.
    With a ``registry_url`` values are Avro, and their schemas are registered there.
    """

    def __init__(
        self,
        topics: RelayTopics,
        name: str,
        at_step: Callable[[str], None] = lambda _: None,
        registry_url: str = "",
    ) -> None:
        self._topics = topics
        self._names = {kind: topics.topic(kind).topic for kind in ALL}
        self._name = name
        self._at_step = at_step
        self._registry_url = registry_url
        self._form: ValueForm = JsonValues()
        self._reports = Reports()
        self._producer: Producer | None = None
        self._relayed: dict[Product, list[Segment]] = {}

    def open(self) -> None:
        """Make the topics that are missing, and end what another process has begun."""
        self._topics.make()
        if self._registry_url:
            self._form = self._register()
        self._connect()

    def stored(self) -> dict[Product, list[Segment]]:
        """Return the runs of windows, and of entries of the bar log, as relayed."""
        if self._producer is None:
            self._connect()
        return {product: list(runs) for product, runs in self._relayed.items()}

    def store(
        self, segment: Segment, tables: StoredTables | StoredBars | StoredStatuses
    ) -> None:
        """Relay entries of a log that follow each other, in one transaction."""
        if isinstance(tables, StoredStatuses):
            raise SinkRefused("statuses are in no topic")
        if self._producer is None:
            # What became of the last one is told by the topics.
            self._connect()
        product = tables.product
        before = self._relayed[product]
        if Coverage(before).has(segment.epoch, segment.last):
            return
        after = with_segment(before, segment)
        producer, self._producer = self._producer, None
        assert producer is not None
        try:
            producer.begin_transaction()
            for record in records_of(tables, after, self._form):
                _produce(producer, self._names[record.topic], record)
            # Errors of the connection are told by then.
            producer.poll(0)
            self._at_step("produced")
            producer.commit_transaction(COMMIT_S)
        except KafkaException as error:
            raise self._fault(error) from None
        self._at_step("committed")
        self._producer, self._relayed[product] = producer, after

    def _register(self) -> ValueForm:
        """Register the schema of each topic's values, as ``<topic>-value``."""
        # Extras: who relays JSON needs neither Avro nor a registry.
        from ingest.schemas.avro_schema import AvroSchema
        from ingest.schemas.registry import open_registry

        registry, schemas = open_registry(self._registry_url), {}
        for kind in ALL:
            text = avro_schema_of(kind)
            number = registry.register(f"{self._names[kind]}-value", text)
            schemas[kind] = number, AvroSchema(text)
        return AvroValues(schemas)

    def _connect(self) -> None:
        topic = self._topics.topic(WINDOW_TOPIC)
        options = {
            # One of a name at a time: a second one ends the first one's work.
            "transactional.id": f"tickthrottle-archive-{self._name}-{topic.topic}",
            "linger.ms": 5,
            "error_cb": self._reports,
        }
        producer = create_client(Producer, topic, options)
        try:
            producer.init_transactions(COMMIT_S)
        except KafkaException as error:
            raise self._fault(error) from None
        self._relayed = {
            product: self._read_relayed(kind) for product, kind in _TOPIC_OF.items()
        }
        self._producer = producer

    def _read_relayed(self, kind: str) -> list[Segment]:
        last = self._topics.last(kind)
        if last is None:
            return []
        try:
            return read_relayed(last.headers())
        except ValueError as error:
            raise SinkRefused(
                f"{self._topics.topic(kind)}: its last record is none of an archive's: "
                f"{error}. Delete the topic, or name another prefix (archive_topics)"
            ) from None

    def _fault(self, error: KafkaException) -> LogError:
        topic = self._topics.topic(ROW_TOPIC)
        if error.args[0].code() in _FENCED:
            return SinkRefused(f"{topic}: another archive of this name has taken over")
        if error.args[0].txn_requires_abort():
            # It is aborted when the next one begins.
            return SinkAway(f"{topic}: {error.args[0].str()}")
        return sentence(topic, error.args[0], self._reports)

    def size_bytes(self) -> int:
        """Return 0: what topics take is for their brokers to say."""
        return 0

    def close(self) -> None:
        """Disconnect; what is not committed is given up."""
        self._producer = None


def _produce(producer: Producer, topic: str, record: Record) -> None:
    while True:
        try:
            producer.produce(topic, record.value, record.key, headers=record.headers)
        except BufferError:
            producer.poll(_FULL_S)
        else:
            return
