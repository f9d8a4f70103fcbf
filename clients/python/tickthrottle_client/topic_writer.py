"""The appending side of a trade log that is a topic of Kafka.

A trade's key is its ISIN, which decides its partition: with librdkafka's own rule,
crc32 of the key modulo P, the partition is that of ``partition_of`` in ``log_v1.py``.
"""

import asyncio
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from tickthrottle_client.gc_pause import no_collection
from tickthrottle_client.kafka_client import (
    ANSWER_WITHIN_S,
    Reports,
    create_admin,
    create_client,
    identify,
    largest_batch,
    open_topic,
    sentence,
)
from tickthrottle_client.kafka_topic import KafkaTopic
from tickthrottle_client.log_v1 import LogInfo, LogUnusable
from tickthrottle_client.receipt_v1 import AppendTally

TOO_LARGE = "too_large_for_log"
"""Why an entry is refused: it is over the size limit of the topic or the broker."""

BATCH_BYTES = 65_536
"""Most bytes sent to a partition at once, unless ``kafka_config`` says otherwise.

A topic refuses a batch over its ``max.message.bytes`` whole.
"""

T = TypeVar("T")

_PATIENCE_S = 1.0
_LOOKS_EVERY_S = 1.0
_HANDED_OVER_AT_ONCE = 1_000
_SHOWN_REFUSALS = 5

_DEFAULTS = {
    # Trades take a third of the space, for a fifth more of a processor here. zstd makes
    # a fifth of them, and everybody's processor pays for it: set it if disks are dear.
    "compression.type": "lz4",
    # What is handed over together goes together: a third more a second than with 0.
    "linger.ms": 5,
    "queue.buffering.max.messages": 100_000,
    "queue.buffering.max.kbytes": 65_536,
    # A broker that is silent for this long may be gone: ask for the next leader.
    "request.timeout.ms": 10_000,
}

_OWN = {"acks": "all", "enable.idempotence": True, "message.timeout.ms": 0}

log = logging.getLogger(__name__)


class TopicWriter:
    """Appends to a topic; what it was given is there once, however long it takes.

    librdkafka keeps sending what is not acknowledged, and the broker drops what comes
    twice, for as long as this writer lives. Its memory is bounded by
    ``queue.buffering.max.kbytes`` (64 MiB) beside the entries of one append.
    """

    dropped_at_cap = 0

    def __init__(
        self, topic: KafkaTopic, info: LogInfo, batch_bytes: int = BATCH_BYTES
    ) -> None:
        """Start the client, connect to nobody yet. Raises LogUnusable for its options.

        ``batch_bytes`` should not be more than the topic takes.
        """
        self.info = info
        self.refused: Counter[str] = Counter()
        self.tallies = [AppendTally() for _ in range(info.partitions)]
        self._topic = topic
        self._reports = Reports()
        self._entries: Sequence[tuple[str, bytes]] | None = None
        self._acknowledged = self._acknowledged_before = 0
        # Not handed over to librdkafka yet; refused for the size of its whole batch.
        self._waiting: list[dict[str, Any]] = []
        self._suspects: deque[dict[str, Any]] = deque()
        self._is_alone = False
        self._broken: KafkaError | None = None
        defaults = {**_DEFAULTS, "batch.size": batch_bytes}
        self._producer = create_client(
            lambda options: Producer({**defaults, **options}),
            topic,
            {**_OWN, "error_cb": self._reports},
        )

    @classmethod
    def open(cls, topic: KafkaTopic) -> Self:
        """Return what appends to a topic, connected.

        Raises LogAway, and LogUnusable for a topic that is not there or not ours to
        use.
        """
        reports = Reports()
        admin = create_admin(topic, reports)
        info = identify(topic, admin, reports)
        most = largest_batch(topic, admin)
        writer = cls(topic, info, min(BATCH_BYTES, most or BATCH_BYTES))
        writer.connect()
        return writer

    def warn(self, event: str, **fields: Any) -> None:
        """Log a warning; the product has a form of its own for it."""
        log.warning("%s (%s)", event, fields)

    def connect(self) -> None:
        """Connect now: otherwise the first append takes half a second or a whole one.

        Raises LogAway and LogUnusable.
        """
        try:
            self._producer.list_topics(self._topic.topic, timeout=ANSWER_WITHIN_S)
        except KafkaException as error:
            raise sentence(self._topic, error.args[0], self._reports) from None

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        Raises LogAway when they were not within a second, and is to be called again
        with the same list then; LogUnusable when the topic is gone or refuses them.
        An entry over the size limit is refused, counted and logged; if it shared a
        batch, the others of that batch come after what followed them.
        """
        deadline = time.monotonic() + _PATIENCE_S
        if entries is not self._entries:
            self._begin(entries)
        while self._entries is not None:
            if not self._waiting and not len(self._producer):
                self._is_alone = bool(self._suspects)
                if not self._suspects:
                    self._entries = None
                    break
                self._waiting = [self._suspects.popleft()]
            self._hand_over()
            self._wait(deadline)
        return self._acknowledged - self._acknowledged_before

    def abandon(self) -> None:
        """Give up what is under way: it is in doubt from now on."""
        before = self._in_doubt()
        self._producer.purge()
        deadline = time.monotonic() + _PATIENCE_S
        while len(self._producer) and time.monotonic() < deadline:
            self._serve(deadline)
        self._waiting, self._entries = [], None
        self._suspects.clear()
        self._is_alone, self._broken = False, None
        in_doubt = self._in_doubt() - before
        if in_doubt:
            self.warn(
                "gave up waiting for the log: it may hold trades that it did not "
                "acknowledge",
                in_doubt=in_doubt,
            )

    def close(self) -> None:
        """Disconnect. What is under way is given up."""
        if self._entries is not None:
            self.abandon()
        self._producer.close()

    def _in_doubt(self) -> int:
        return sum(tally.in_doubt for tally in self.tallies)

    def _begin(self, entries: Sequence[tuple[str, bytes]]) -> None:
        if self._entries is not None:
            raise RuntimeError("an append is under way: only its own list may follow")
        self._entries = entries
        self._acknowledged_before = self._acknowledged
        self._waiting = [{"key": isin, "value": value} for isin, value in entries]

    def _hand_over(self) -> None:
        """Give librdkafka what is waiting, as far as its queue has room."""
        while self._waiting:
            messages = self._waiting[:_HANDED_OVER_AT_ONCE]
            with no_collection():
                taken = self._producer.produce_batch(
                    self._topic.topic, messages, on_delivery=self._delivered
                )
            left = [] if taken == len(messages) else self._not_taken(messages)
            self._waiting[: len(messages)] = left
            if left:
                return

    def _not_taken(self, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return what has to be handed over again; judge what cannot be."""
        left = []
        for message in messages:
            error = message.pop("_error", None)
            if error is None:
                continue
            if error.code() == KafkaError._QUEUE_FULL:
                left.append(message)
            elif error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                self._refuse(message)
            else:
                self._broken = error
        return left

    def _wait(self, deadline: float) -> None:
        """Wait until all is reported, or a part of it if there is more to hand over."""
        self._serve(deadline)
        while not self._waiting and len(self._producer) and self._broken is None:
            if time.monotonic() >= deadline:
                break
            self._serve(deadline)
        if self._broken is not None:
            # librdkafka has given up: whatever the error is, waiting does not help.
            broken = sentence(self._topic, self._broken)
            self.abandon()
            raise LogUnusable(str(broken))
        if time.monotonic() >= deadline and (self._waiting or len(self._producer)):
            silent = KafkaError(KafkaError._TIMED_OUT)
            trouble = sentence(self._topic, silent, self._reports)
            if isinstance(trouble, LogUnusable):
                self.abandon()
            raise trouble

    def _serve(self, deadline: float) -> None:
        """Take in what is reported; wait for something if there is nothing."""
        left_s = max(0.0, deadline - time.monotonic())
        try:
            # Not flush: it goes on calling back while an error is pending.
            self._producer.poll(left_s)
        except KafkaException as error:
            self._broken = error.args[0]

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        """Take in what became of one entry. Called for each: it has to be quick."""
        if error is not None:
            self._failed(error, message)
            return
        self._acknowledged += 1
        partition: Any = message.partition()
        tally = self._tally(partition)
        tally.acknowledged += 1
        offset: Any = message.offset()
        # A broker that has forgotten where it put what came twice gives no offset.
        if offset >= 0:
            if tally.first is None:
                # At once, for who reads it from another thread: never only one end.
                tally = replace(tally, first=offset, last=offset)
                self.tallies[partition] = tally
            tally.last = offset

    def _failed(self, error: KafkaError, message: Message) -> None:
        if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            entry = {"key": message.key(), "value": message.value()}
            if self._is_alone:
                self._refuse(entry)
            else:
                self._suspects.append(entry)
            return
        if error.code() == KafkaError._DESTROY:
            # A partition that goes takes along what waits in it; librdkafka tells this
            # of what it was about to send again.
            error = KafkaError(KafkaError._UNKNOWN_PARTITION)
        partition = message.partition()
        # What has no partition yet was never sent.
        if partition is not None:
            self._tally(partition).in_doubt += 1
        if self._broken is None:
            self._broken = error

    def _refuse(self, entry: dict[str, Any]) -> None:
        self.refused[TOO_LARGE] += 1
        if self.refused[TOO_LARGE] <= _SHOWN_REFUSALS:
            key = entry["key"]
            self.warn(
                "refused: a trade is too large for the topic (max.message.bytes)",
                isin=key.decode() if isinstance(key, bytes) else key,
                bytes=len(entry["value"]),
                topic=self._topic.topic,
            )

    def _tally(self, partition: int) -> AppendTally:
        # A topic can get more partitions while it is written to.
        while partition >= len(self.tallies):
            self.tallies.append(AppendTally())
        return self.tallies[partition]


class TopicAppender:
    """A ``TopicWriter`` in a thread of its own: one thing at a time, in order."""

    most_entries = 5_000
    """Of one append."""

    dropped_at_cap = 0

    def __init__(
        self, topic: KafkaTopic, writer: TopicWriter, thread: ThreadPoolExecutor
    ) -> None:
        self.info = writer.info
        self.tallies = writer.tallies
        self.refused = writer.refused
        self._topic = topic
        self._writer = writer
        self._thread = thread
        self._looked_at_s = time.monotonic()

    @classmethod
    async def open(cls, topic: KafkaTopic) -> Self:
        """Open a topic, which has to be there. Raises LogAway and LogUnusable."""
        thread = ThreadPoolExecutor(1, thread_name_prefix="trades")
        try:
            writer = await _call(thread, lambda: TopicWriter.open(topic))
        except BaseException:
            thread.shutdown(wait=False)
            raise
        return cls(topic, writer, thread)

    async def append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Append as ``TopicWriter.append`` does.

        Raises LogUnusable also when the topic is another one: it looks once a second.
        """
        await _call(self._thread, lambda: self._append(entries))

    async def abandon(self) -> None:
        """See ``TopicWriter.abandon``."""
        await _call(self._thread, self._writer.abandon)

    async def close(self) -> None:
        """Disconnect."""
        await _call(self._thread, self._writer.close)
        self._thread.shutdown(wait=False)

    def _append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        if time.monotonic() - self._looked_at_s >= _LOOKS_EVERY_S:
            # It may have been deleted and made again under its name.
            before, now = self.info.log_id, open_topic(self._topic).log_id
            if now != before:
                raise LogUnusable(
                    f"{self._topic} is another one now: it was {before}, it is {now}; "
                    "start anew to append to it"
                )
            self._looked_at_s = time.monotonic()
        self._writer.append(entries)


async def _call(thread: ThreadPoolExecutor, function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(thread, function)
