"""The trade log in a topic of Kafka, read: a position is an offset.

Works on any topic: whatever its number of partitions, keyed or not, stamped by the
brokers or by its producers, compacted or not, written in transactions or not. What a
producer has not committed is not there yet; what it aborted never is.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from ingest.kafka.address import KafkaTopic
from ingest.kafka.column_consumer import ColumnConsumer, consumer_kind
from ingest.kafka.message_consumer import MessageConsumer
from ingest.kafka.offsets import KafkaOffsets
from ingest.kafka.partition_end import AHEAD_MS
from ingest.tradelog.contract import (
    NO_SERVER,
    PIECE_BYTES,
    Chunk,
    Head,
    LogAway,
    LogInfo,
    Ranges,
    Tail,
)
from tickthrottle_client.kafka_client import (
    ANSWER_WITHIN_S,
    Reports,
    TopicMissing,
    create_client,
    sentence,
)

_CHUNK = 10_000
_POLL_S = 0.01

_Consumer = ColumnConsumer | MessageConsumer

_CONSUMER: Mapping[str, Any] = {
    # There is no group: what was read is kept with the windows. The name is asked for.
    "group.id": "tickthrottle",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    # A request that waits for news would hold up the next batch's first one.
    "fetch.wait.max.ms": 5,
    # What is fetched beyond a batch is fetched in vain; once enough is waiting to be
    # taken, the client would pause for a second.
    "queued.min.messages": 20_000,
    # However large they are: this is the bound in bytes of what waits to be taken.
    "queued.max.messages.kbytes": PIECE_BYTES // 1024,
    "fetch.queue.backoff.ms": 5,
}


class KafkaLogReader:
    """Reads a topic and says where a window ends in it. For one thread at a time.

    ``only`` are the partitions it looks at; unless given all, those too that are added
    later. Its clock is this machine's, ``margin_ms`` late: it may be that far ahead of
    the brokers'. Methods raise LogAway, and LogUnusable once the topic is another one.
    With ``speedups`` the compiled package reads, where it is installed.
    """

    def __init__(
        self,
        topic: KafkaTopic,
        info: LogInfo,
        only: Sequence[int] = (),
        margin_ms: int = 0,
        *,
        speedups: bool = True,
    ) -> None:
        self.info = info
        self._speedups = speedups
        self._topic = topic
        self.margin_ms = margin_ms
        self._reports = Reports()
        self._offsets = KafkaOffsets(topic, info, only, self._reports)
        self._opened: _Consumer | None = None

    def server_id(self) -> str:
        """Return nothing: the brokers take care of what was acknowledged."""
        return NO_SERVER

    def clock_ms(self) -> int:
        """Return this machine's clock less the margin, milliseconds since 1970."""
        return time.time_ns() // 1_000_000 - self.margin_ms

    def partitions(self) -> tuple[int, ...]:
        self._offsets.ends()
        return self._offsets.partitions

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        """Return the clock, then each partition's end before a boundary.

        An entry at or past the boundary settles its partition's cut: what is appended
        later stands behind it. Once each has one the margin is not waited for, and the
        clock is said to be at the boundary.
        """
        clock_ms = self.clock_ms()
        partitions = tuple(partitions) or self._offsets.partitions
        # The ends first: what is appended after that is past the boundary, or else
        # behind the cut. Were they looked up later, it could be before the cut.
        ends = self._offsets.ends(partitions)
        firsts = self._offsets.firsts_at(before_ms, partitions)
        now_ms = clock_ms + self.margin_ms
        latest_ms = now_ms + AHEAD_MS
        # Whether there is an entry stamped past the boundary, and that can be true.
        is_past = {
            p: firsts[p][0] >= 0 and firsts[p][1] <= latest_ms for p in partitions
        }
        positions = tuple(
            (firsts[p][0] if is_past[p] else ends[p]) - 1 for p in partitions
        )
        if now_ms >= before_ms and all(is_past.values()):
            clock_ms = max(clock_ms, before_ms)
        counts = tuple(position + 1 for position in positions)
        return Tail(clock_ms, partitions, positions, counts)

    def head(self) -> Head:
        starts, firsts = self._offsets.starts(), self._offsets.firsts_at(0)
        return Head(
            min((ms for _, ms in firsts.values() if ms >= 0), default=None),
            tuple(starts),
            tuple(start - 1 for start in starts.values()),
            tuple(starts.values()),
        )

    def bounds(self) -> dict[int, tuple[int, int]]:
        """Return for each partition what ``read`` needs to be given to read all."""
        starts, ends = self._offsets.starts(), self._offsets.ends()
        return {p: (start - 1, ends[p] - 1) for p, start in starts.items()}

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> dict[int, int]:
        tail = self.tail(time_ms, partitions)
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
        except TopicMissing:
            raise self._offsets.unknown_partition() from None
        finally:
            consumer.unassign()

    def trim(self, positions: Mapping[int, int], before_ms: int) -> None:
        """Keep everything: how long entries stay is the topic's own affair."""

    def _consume(
        self, consumer: _Consumer, left: dict[int, tuple[int, int]]
    ) -> Iterator[tuple[int, Chunk]]:
        heard_s = time.monotonic()
        while left:
            for partition, chunk in self._chunks(consumer, left):
                yield partition, chunk
                heard_s = time.monotonic()
                after, upto = chunk.upto, left[partition][1]
                left[partition] = after, upto
                if after == upto:
                    del left[partition]
                    if left:
                        consumer.incremental_unassign([self._place(partition)])
            if time.monotonic() - heard_s > ANSWER_WITHIN_S:
                error = self._reports.last or KafkaError(KafkaError._TIMED_OUT)
                raise sentence(self._topic, error, self._reports)

    def _chunks(
        self, consumer: _Consumer, left: Mapping[int, tuple[int, int]]
    ) -> Iterator[tuple[int, Chunk]]:
        """Yield what comes next; ``left`` is brought up to date after each chunk."""
        missing = sum(upto - after for after, upto in left.values())
        runs, events = consumer.take(min(_CHUNK, missing), _POLL_S)
        for partition, run in runs:
            if partition in left:
                chunk = _within(run, *left[partition])
                if chunk is not None:
                    yield partition, chunk
        for partition, error, offset in events:
            # Not every error has a partition, and one may have come too late.
            if partition not in left and not error.fatal():
                continue
            if error.code() == KafkaError._PARTITION_EOF:
                yield partition, self._ended(partition, offset, *left[partition])
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                yield partition, self._deleted(consumer, partition, *left[partition])
            else:
                raise sentence(self._topic, error, self._reports)

    def _ended(self, partition: int, end: int, after: int, upto: int) -> Chunk:
        """Return what is left of a range in a partition that ends at ``end``."""
        if end <= upto:
            rule = f"ends at {end}, but {upto} was there before"
            raise LogAway(f"{self._topic}: partition {partition} {rule}")
        return _empty(upto, upto - after)

    def _deleted(
        self, consumer: _Consumer, partition: int, after: int, upto: int
    ) -> Chunk:
        """Return how far entries are gone, and read on from those that are left."""
        first = self._offsets.starts([partition])[partition]
        if first <= after + 1:
            rule = f"ends before {after + 1}, which was there before"
            raise LogAway(f"{self._topic}: partition {partition} {rule}")
        if first <= upto:
            consumer.incremental_unassign([self._place(partition)])
            consumer.incremental_assign([self._place(partition, first)])
        return _empty(min(first - 1, upto), 0)

    def _consumer(self) -> _Consumer:
        if self._opened is None:
            own = {**_CONSUMER, "error_cb": self._reports}
            kind = consumer_kind(self._speedups)
            self._opened = create_client(kind, self._topic, own)
        return self._opened

    def _place(self, partition: int, offset: int = 0) -> TopicPartition:
        return TopicPartition(self._topic.topic, partition, offset)


def _within(run: Chunk, after: int, upto: int) -> Chunk | None:
    """Return what a run of messages of one partition holds of a range."""
    offsets, covered = run.positions, min(run.upto, upto)
    if covered <= after:
        return None
    columns = offsets, run.append_ms, run.payloads
    if offsets[0].as_py() <= after or run.upto > upto:
        is_in = pc.and_(pc.greater(offsets, after), pc.less_equal(offsets, upto))
        columns = tuple(column.filter(is_in) for column in columns)
    return Chunk(*columns, upto=covered, blanks=covered - after - len(columns[0]))


def _empty(upto: int, blanks: int) -> Chunk:
    none = pa.array([], pa.int64())
    return Chunk(none, none, pa.array([], pa.binary()), upto, blanks)
