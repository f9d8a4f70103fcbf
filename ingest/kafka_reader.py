"""The trade log in a topic of Kafka, read: a position is an offset.

Works on any topic: whatever its number of partitions, keyed or not, stamped by the
brokers or by its producers, compacted or not, written in transactions or not. What a
producer has not committed is not there yet; what it aborted never is.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pyarrow as pa
from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import ListOffsetsResultInfo, OffsetSpec

from ingest.collector import no_collection
from ingest.kafka import (
    ANSWER_WITHIN_S,
    Reports,
    answer,
    bad_option,
    create_admin,
    identity,
    sentence,
)
from ingest.kafka_address import KafkaTopic
from ingest.log import Chunk, Head, LogAway, LogInfo, LogUnusable, Ranges, Tail

AHEAD_MS = 5_000
"""An entry stamped further ahead of this machine's clock does not say when it was
appended: only a topic that lets its producers stamp can hold one.
"""

_CHUNK = 10_000
_POLL_S = 0.01

_EARLIEST = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST = OffsetSpec.latest()  # type: ignore[no-untyped-call]

_CONSUMER: Mapping[str, Any] = {
    # There is no group: what was read is kept with the windows. The name is asked for.
    "group.id": "tickthrottle",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # A request that waits for news would hold up the next batch's first one.
    "fetch.wait.max.ms": 5,
}


class KafkaLogReader:
    """Reads a topic and says where a window ends in it. For one thread at a time.

    ``only`` are the partitions it looks at; unless given all, those too that are added
    later. Its clock is this machine's, ``margin_ms`` late: so much may it be ahead of
    the brokers'. Methods raise LogAway, and LogUnusable once the topic is another one.
    """

    def __init__(
        self,
        topic: KafkaTopic,
        info: LogInfo,
        only: Sequence[int] = (),
        margin_ms: int = 0,
    ) -> None:
        self.info = info
        self._topic = topic
        self._partitions = tuple(only) or tuple(range(info.partitions))
        self._has_all = not only
        self._margin_ms = margin_ms
        self._reports = Reports()
        self._admin: AdminClient | None = None
        self._opened: Consumer | None = None

    def clock_ms(self) -> int:
        """Return this machine's clock less the margin, milliseconds since 1970."""
        return _now_ms() - self._margin_ms

    def tail(self, before_ms: int) -> Tail:
        """Return the clock, then each partition's end before a boundary."""
        clock_ms = self.clock_ms()
        # All are asked at once, a broker answers in order: what is appended after the
        # ends were looked up is past the boundary or behind the cut.
        ends = self._ask(_LATEST)
        found = self._ask(OffsetSpec.for_timestamp(before_ms))
        partitions = self._partitions
        self._check(self._describe())
        positions = [
            self._position(p, ends[p], found[p], clock_ms + AHEAD_MS)
            for p in partitions
        ]
        counts = tuple(position + 1 for position in positions)
        return Tail(clock_ms, partitions, tuple(positions), counts)

    def head(self) -> Head:
        """Return the append time of the oldest entry and what went before it."""
        starts = self._ask(_EARLIEST)
        firsts = self._ask(OffsetSpec.for_timestamp(0))
        times = [self._answer(firsts[p]).timestamp for p in self._partitions]
        counts = tuple(self._answer(starts[p]).offset for p in self._partitions)
        return Head(
            min((ms for ms in times if ms >= 0), default=None),
            self._partitions,
            tuple(count - 1 for count in counts),
            counts,
        )

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return for each partition what ``read`` needs to be given to read all."""
        starts, ends = self._ask(_EARLIEST), self._ask(_LATEST)
        return {
            p: (self._answer(starts[p]).offset - 1, self._answer(ends[p]).offset - 1)
            for p in self._partitions
        }

    def positions_at(self, time_ms: int) -> dict[int, int]:
        """Return for each partition the last position before a time."""
        tail = self.tail(time_ms)
        return dict(zip(tail.partitions, tail.positions, strict=True))

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, by partition, in chunks.

        Entries that the brokers have deleted are passed over, and are no blanks.
        """
        left = {p: span for p, span in ranges.items() if span[0] < span[1]}
        if not left:
            return
        consumer = self._consumer()
        try:
            consumer.assign(
                [self._place(p, after + 1) for p, (after, _) in left.items()]
            )
            yield from self._consume(consumer, left)
        except KafkaException as error:
            raise sentence(self._topic, error.args[0], self._reports) from None
        finally:
            consumer.unassign()

    def trim(self, positions: Mapping[int, int], before_ms: int) -> None:
        """Keep everything: how long entries stay is the topic's own affair."""

    def _consume(
        self, consumer: Consumer, left: dict[int, tuple[int, int]]
    ) -> Iterator[tuple[int, Chunk]]:
        heard_s = time.monotonic()
        while left:
            missing = sum(upto - after for after, upto in left.values())
            messages = consumer.consume(min(_CHUNK, missing), _POLL_S)
            if messages:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > ANSWER_WITHIN_S:
                raise self._away()
            for partition, run in groupby(messages, _partition):
                # Not every error has a partition, and one may have come too late.
                for chunk in self._chunks(consumer, partition, list(run), left):
                    yield partition, chunk
                    after, upto = chunk.upto, left[partition][1]
                    left[partition] = after, upto
                    if after == upto:
                        del left[partition]
                        if left:
                            consumer.incremental_unassign([self._place(partition)])

    def _chunks(
        self,
        consumer: Consumer,
        partition: int,
        run: list[Message],
        left: Mapping[int, tuple[int, int]],
    ) -> Iterator[Chunk]:
        events = [message for message in run if message.error() is not None]
        if events:
            run = [message for message in run if message.error() is None]
        if partition in left and run:
            chunk = _chunk(run, *left[partition])
            if chunk is not None:
                yield chunk
        for event in events:
            error = event.error()
            if error is None or (partition not in left and not error.fatal()):
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                yield self._ended(partition, event.offset() or 0, *left[partition])
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                yield self._deleted(consumer, partition, *left[partition])
            else:
                raise sentence(self._topic, error, self._reports)

    def _ended(self, partition: int, end: int, after: int, upto: int) -> Chunk:
        """Return what is left of a range in a partition that ends at ``end``."""
        if end <= upto:
            raise LogAway(
                f"{self._topic}: partition {partition} ends at {end}, "
                f"but {upto} was there before"
            )
        return _empty(upto, upto - after)

    def _deleted(
        self, consumer: Consumer, partition: int, after: int, upto: int
    ) -> Chunk:
        """Return how far entries are gone, and read on from those that are left."""
        asked = self._ask(_EARLIEST, [partition])
        first = self._answer(asked[partition]).offset
        if first <= after + 1:
            raise LogAway(
                f"{self._topic}: partition {partition} ends before {after + 1}, "
                "which was there before"
            )
        if first <= upto:
            consumer.incremental_unassign([self._place(partition)])
            consumer.incremental_assign([self._place(partition, first)])
        return _empty(min(first - 1, upto), 0)

    def _position(self, partition: int, end: Any, found: Any, latest_ms: int) -> int:
        last = self._answer(end).offset - 1
        first = self._answer(found)
        if first.offset < 0 or first.timestamp > latest_ms:
            return last
        return first.offset - 1

    def _ask(
        self, spec: OffsetSpec, partitions: Iterable[int] | None = None
    ) -> dict[int, Any]:
        which = self._partitions if partitions is None else partitions
        asked = self._asker().list_offsets(
            {self._place(p): spec for p in which},
            isolation_level=self._isolation(),
            request_timeout=ANSWER_WITHIN_S,
        )
        return {place.partition: future for place, future in asked.items()}

    def _answer(self, future: Any) -> ListOffsetsResultInfo:
        found: ListOffsetsResultInfo = answer(self._topic, future, self._reports)
        return found

    def _describe(self) -> Any:
        name = self._topic.topic
        return self._asker().describe_topics(
            TopicCollection([name]), request_timeout=ANSWER_WITHIN_S
        )[name]

    def _check(self, asked: Any) -> None:
        """See whether the topic is still the same, and whether it has grown."""
        info = identity(self._topic, answer(self._topic, asked, self._reports))
        if info.log_id != self.info.log_id:
            raise LogUnusable(
                f"kafka_topic {self._topic.topic}: was deleted and made again; "
                f"positions of {self.info.log_id} mean nothing in {info.log_id}"
            )
        if self._has_all:
            self._partitions = tuple(range(info.partitions))

    def _isolation(self) -> IsolationLevel:
        is_dirty = (
            dict(self._topic.options).get("isolation.level") == "read_uncommitted"
        )
        return (
            IsolationLevel.READ_UNCOMMITTED
            if is_dirty
            else IsolationLevel.READ_COMMITTED
        )

    def _asker(self) -> AdminClient:
        if self._admin is None:
            admin = create_admin(self._topic, self._reports)
            # One question in thirty about offsets is never answered if it is a
            # client's first one, before it is connected; others are.
            asked = admin.describe_topics(
                TopicCollection([self._topic.topic]), request_timeout=ANSWER_WITHIN_S
            )
            answer(self._topic, asked[self._topic.topic], self._reports)
            self._admin = admin
        return self._admin

    def _consumer(self) -> Consumer:
        if self._opened is None:
            own = {**_CONSUMER, "error_cb": self._reports}
            try:
                self._opened = Consumer(self._topic.client_options(own))
            except KafkaException as error:
                raise bad_option(self._topic, error) from None
        return self._opened

    def _away(self) -> LogAway | LogUnusable:
        error = self._reports.last or KafkaError(KafkaError._TIMED_OUT)
        return sentence(self._topic, error, self._reports)

    def _place(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self._topic.topic, partition, offset)


def _partition(message: Message) -> int:
    partition = message.partition()
    return -1 if partition is None else partition


def _chunk(run: Sequence[Message], after: int, upto: int) -> Chunk | None:
    """Return what a run of messages of one partition holds of a range."""
    with no_collection():
        offsets: list[Any] = [message.offset() for message in run]
        covered = min(offsets[-1], upto)
        if covered <= after:
            return None
        if offsets[-1] > upto or offsets[0] <= after:
            run = [m for m, at in zip(run, offsets, strict=True) if after < at <= upto]
            offsets = [message.offset() for message in run]
        times = [message.timestamp()[1] for message in run]
        payloads = [message.value() or b"" for message in run]
    return Chunk(
        pa.array(offsets, pa.int64()),
        pa.array(times, pa.int64()),
        pa.array(payloads, pa.binary()),
        covered,
        covered - after - len(offsets),
    )


def _empty(upto: int, blanks: int) -> Chunk:
    none = pa.array([], pa.int64())
    return Chunk(none, none, pa.array([], pa.binary()), upto, blanks)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
