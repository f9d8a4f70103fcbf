"""Messages of Kafka in columns, by confluent-kafka, which makes an object of each."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, Message

from ingest.tradelog.contract import Chunk
from tickthrottle_client.gc_pause import no_collection

_STAMP = itemgetter(1)

Taken = tuple[list[tuple[int, Chunk]], list[tuple[int, KafkaError, int]]]
"""Messages in runs of one partition, then what came in place of messages: partition
(-1: none), error and offset. Blanks of a run are not counted."""


class MessageConsumer(Consumer):
    """Works wherever confluent-kafka does."""

    def take(self, most: int, wait_s: float) -> Taken:
        """Return up to so many messages, and what happened; wait so long for all."""
        with no_collection():
            messages = self.consume(most, wait_s)
        # Calls of methods are most of what reading costs: none is made in a loop here.
        errors = [*map(Message.error, messages)]
        both = [*zip(messages, errors, strict=True)] if any(errors) else []
        events = [
            (_known(message.partition()), error, message.offset() or 0)
            for message, error in both
            if error is not None
        ]
        if both:
            messages = [message for message, error in both if error is None]
        runs = groupby(messages, Message.partition)
        return [(_known(partition), _chunk([*run])) for partition, run in runs], events


def _known(partition: int | None) -> int:
    return -1 if partition is None else partition


def _chunk(messages: Sequence[Message]) -> Chunk:
    first, last = messages[0].offset() or 0, messages[-1].offset() or 0
    every, has_gaps = range(first, last + 1), len(messages) <= last - first
    offsets = [*map(Message.offset, messages)] if has_gaps else every
    stamps = [*map(_STAMP, map(Message.timestamp, messages))]
    payloads = pa.array([*map(Message.value, messages)], pa.binary()).fill_null(b"")
    return Chunk(
        pa.array(offsets, pa.int64()), pa.array(stamps, pa.int64()), payloads, last
    )
