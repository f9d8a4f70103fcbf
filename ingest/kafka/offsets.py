"""What brokers say of a topic's offsets, and whether it is still the same topic."""

from collections.abc import Iterable, Sequence
from typing import Any

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogInfo, LogUnusable
from tickthrottle_client.kafka_client import (
    ANSWER_WITHIN_S,
    Reports,
    TopicMissing,
    answer,
    create_admin,
    describe,
    identity,
)

_UNCOMMITTED = IsolationLevel.READ_UNCOMMITTED
_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_NEWEST = OffsetSpec.max_timestamp()  # type: ignore[no-untyped-call]


class KafkaOffsets:
    """Asks brokers about some partitions of a topic; all of them unless given.

    Methods raise LogAway, and LogUnusable once the topic is another one.
    """

    def __init__(
        self, topic: KafkaTopic, info: LogInfo, only: Sequence[int], reports: Reports
    ) -> None:
        self.partitions = tuple(only) or tuple(range(info.partitions))
        self._log_id = info.log_id
        self._has_all = not only
        self._topic = topic
        self._reports = reports
        is_dirty = dict(topic.options).get("isolation.level") == "read_uncommitted"
        self._isolation = _UNCOMMITTED if is_dirty else IsolationLevel.READ_COMMITTED
        self._admin: AdminClient | None = None
        # As many as its client has heard of.
        self._known = 0

    def starts(self, partitions: Iterable[int] | None = None) -> dict[int, int]:
        """Return each partition's first offset that is left."""
        return self._offsets(self._ask(_EARLIEST, partitions))

    def ends(self, partitions: Iterable[int] | None = None) -> dict[int, int]:
        """Return the offset after each partition's last one.

        Of transactions only what was committed counts. It is found out here that the
        topic is another one, or has more partitions: they are in the next answer.
        """
        described = describe(self._topic, self._asker())
        asked = self._ask(_LATEST, partitions)
        self._recognise(described)
        return self._offsets(asked)

    def highs(self) -> dict[int, int]:
        """Return the offset after each partition's last one, committed or not."""
        return self._offsets(self._ask(_LATEST, isolation=_UNCOMMITTED))

    def newest_stamps(self) -> dict[int, int]:
        """Return the newest stamp of each partition, negative where nothing is left."""
        asked = self._ask(_NEWEST)
        return {p: self._answer(future).timestamp for p, future in asked.items()}

    def firsts_at(
        self, time_ms: int, partitions: Iterable[int] | None = None
    ) -> dict[int, tuple[int, int]]:
        """Return the first offset stamped at or past a time, and its stamp.

        Both are negative for a partition without one.
        """
        asked = self._ask(OffsetSpec.for_timestamp(time_ms), partitions)
        answers = {p: self._answer(future) for p, future in asked.items()}
        return {p: (first.offset, first.timestamp) for p, first in answers.items()}

    def unknown_partition(self) -> LogAway:
        """Return what to raise if a partition is unknown, though its topic exists.

        Brokers and clients learn one after the other of a partition that is added: it
        is there soon. Raises LogUnusable if the topic does not exist or is another one.
        """
        self._recognise(describe(self._topic, self._asker()))
        return LogAway(f"{self._topic}: a partition is not known everywhere yet")

    def _ask(
        self,
        spec: OffsetSpec,
        partitions: Iterable[int] | None = None,
        isolation: IsolationLevel | None = None,
    ) -> dict[int, Any]:
        name, admin = self._topic.topic, self._asker()
        which = self.partitions if partitions is None else tuple(partitions)
        if max(which) >= self._known:
            # To ask of one that the client has not heard of would fail, and has
            # corrupted its memory (librdkafka 2.16).
            unknown = self.unknown_partition()
            if max(which) >= self._known:
                raise unknown
        asked = admin.list_offsets(
            {TopicPartition(name, p): spec for p in which},
            isolation_level=isolation or self._isolation,
            request_timeout=ANSWER_WITHIN_S,
        )
        return {place.partition: future for place, future in asked.items()}

    def _offsets(self, asked: dict[int, Any]) -> dict[int, int]:
        return {p: self._answer(future).offset for p, future in asked.items()}

    def _answer(self, future: Any) -> ListOffsetsResultInfo:
        try:
            result: ListOffsetsResultInfo = answer(self._topic, future, self._reports)
        except TopicMissing:
            raise self.unknown_partition() from None
        return result

    def _recognise(self, described: Any) -> None:
        info = identity(self._topic, answer(self._topic, described, self._reports))
        if info.log_id != self._log_id:
            raise LogUnusable(
                f"kafka_topic {self._topic.topic}: was deleted and made again; "
                f"positions of {self._log_id} mean nothing in {info.log_id}"
            )
        self._known = info.partitions
        if self._has_all:
            self.partitions = tuple(range(info.partitions))

    def _asker(self) -> AdminClient:
        if self._admin is None:
            self._admin = create_admin(self._topic, self._reports)
            # One question in thirty about offsets is never answered if it is a
            # client's first one, before it is connected; others are.
            self._recognise(describe(self._topic, self._admin))
        return self._admin
