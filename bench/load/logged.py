"""The trade log as an independent reader finds it, window by window.

What is compared with must not come from what is tested: nothing of the product's
readers is used here.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any, NamedTuple, cast

import redis
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from bench.load.oracle import Piece
from ingest.kafka_address import KafkaTopic
from throttle.cut import Cut
from throttle.ledger import BatchEntry

_CHUNK = 10_000
_SEQUENCE_BITS = 21
_SILENT_S = 30.0


class Unreadable(RuntimeError):
    """The log cannot be read any more; the message says why."""


class LoggedWindow(NamedTuple):
    """All entries of one window.

    Is it not ``complete``, some of them were dropped from the log before. ``last_ms``
    is the latest append time that counts in it.
    """

    end_ms: int
    pieces: list[Piece]
    is_complete: bool
    last_ms: int | None = None


def windows_in_redis(
    url: str, namespace: str, start: Cut, upto_ms: int, window_ms: int
) -> Iterator[LoggedWindow]:
    """Yield the windows of a log in Redis Streams behind a cut, oldest first.

    A window is that of the append time, which the entry's id carries.
    """
    with redis.Redis.from_url(url, socket_timeout=30) as client:
        # As the server sends them: dictionaries would take twice as long.
        client.set_response_callback("XRANGE", lambda reply, **_: reply)
        reader = _Streams(client, namespace, start)
        for end_ms in range(start.end_ms + window_ms, upto_ms + 1, window_ms):
            yield reader.window(end_ms - window_ms, end_ms)


def windows_in_kafka(
    topic: KafkaTopic, start: Cut, batches: Sequence[BatchEntry], window_ms: int
) -> Iterator[LoggedWindow]:
    """Yield the windows of some batches that follow a cut, oldest first.

    Brokers and this machine need not agree on the time: the batches' cuts say which
    entries are theirs, the append time then tells the window. Raises Unreadable.
    """
    try:
        with closing(_Topic(topic, start)) as reader:
            for batch in batches:
                yield from _of_batch(batch, reader.read(batch), window_ms)
                reader.forget()
    except KafkaException as error:
        raise Unreadable(f"{topic}: {error}") from None


class _Streams:
    """Reads the streams of a log side by side."""

    def __init__(self, client: redis.Redis, namespace: str, start: Cut) -> None:
        self._client = client
        self._keys = [f"{namespace}:log:{p}" for p in start.partitions]
        # How many entries each stream has had up to where it was read.
        self._counts = list(start.counts)

    def window(self, start_ms: int, end_ms: int) -> LoggedWindow:
        columns = [Piece([], [], []) for _ in self._keys]
        lows: dict[int, str] = {p: f"{start_ms}-0" for p in range(len(self._keys))}
        while lows:
            with self._client.pipeline(transaction=False) as pipe:
                for place, low in lows.items():
                    pipe.xrange(self._keys[place], low, f"({end_ms}-0", count=_CHUNK)
                replies: list[Any] = pipe.execute()
            for place, entries in zip(list(lows), replies, strict=True):
                if entries:
                    _add(columns[place], entries)
                if len(entries) < _CHUNK:
                    del lows[place]
                else:
                    lows[place] = f"({entries[-1][0].decode()}"
        is_complete = self._is_complete(start_ms)
        for place, piece in enumerate(columns):
            count = self._counts[place]
            self._counts[place] = None if count is None else count + len(piece.payloads)
        return LoggedWindow(end_ms, columns, is_complete)

    def _is_complete(self, start_ms: int) -> bool:
        """Tell, after a window was read, that none of it had been dropped by then."""
        with self._client.pipeline(transaction=False) as pipe:
            for key in self._keys:
                pipe.xinfo_stream(key)
            infos: list[Any] = pipe.execute(raise_on_error=False)
        return all(map(self._keeps, infos, self._counts, [start_ms] * len(infos)))

    def _keeps(self, info: Any, count: int | None, start_ms: int) -> bool:
        if isinstance(info, redis.ResponseError) and "no such key" in str(info):
            return not count
        if isinstance(info, Exception):
            raise info
        gone = int(info["entries-added"]) - int(info["length"])
        if gone == 0 or (count is not None and gone <= count):
            return True
        # Only the oldest are dropped.
        front = info["first-entry"]
        oldest = front[0] if front else info["last-generated-id"]
        return int(oldest.partition(b"-")[0]) < start_ms


def _add(piece: Piece, entries: Sequence[Any]) -> None:
    append_ms, positions, payloads = cast("Any", piece)
    # All ids at once, and no loop of ours: a third of a read went into taking apart
    # one id after the other.
    numbers = list(map(int, b"-".join([e[0] for e in entries]).split(b"-")))
    append_ms += numbers[::2]
    positions += [
        ms << _SEQUENCE_BITS | number
        for ms, number in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    payloads += [
        fields[1] if len(fields) == 2 and fields[0] == b"trade" else _named(fields)
        for _, fields in entries
    ]


def _named(fields: Sequence[bytes]) -> bytes:
    return dict(zip(fields[::2], fields[1::2], strict=True)).get(b"trade", b"")


class _Topic:
    """Reads a topic's partitions from a cut on; keeps what is not asked for yet."""

    def __init__(self, topic: KafkaTopic, start: Cut) -> None:
        self._topic = topic
        self._waiting: dict[int, list[tuple[int, int, bytes]]] = {}
        self._reached = {p: start.position(p) for p in start.partitions}
        self._ended: set[int] = set()
        self._consumer = Consumer(
            topic.client_options(
                {
                    "group.id": "audit",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "error",
                }
            )
        )
        places = [TopicPartition(topic.topic, p, at + 1) for p, at in self._places()]
        self._consumer.assign(places)

    def close(self) -> None:
        self._consumer.close()

    def read(self, batch: BatchEntry) -> Mapping[int, list[tuple[int, int, bytes]]]:
        """Return position, append time and payload of a batch's entries."""
        self._upto = {p: batch.end.position(p) for p in batch.end.partitions}
        heard_s = time.monotonic()
        while not all(self._has(p, upto) for p, upto in self._upto.items()):
            messages = self._consumer.consume(_CHUNK, timeout=0.5)
            if messages:
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > _SILENT_S:
                raise Unreadable(f"{self._topic}: was silent for {_SILENT_S:g} s")
            for message in messages:
                self._take(message)
        return {
            p: [entry for entry in self._waiting.get(p, []) if entry[0] <= upto]
            for p, upto in self._upto.items()
        }

    def forget(self) -> None:
        """Let go of what was read last."""
        for p, upto in self._upto.items():
            entries = self._waiting.get(p, [])
            self._waiting[p] = [entry for entry in entries if entry[0] > upto]

    def _places(self) -> Iterator[tuple[int, int]]:
        for p, at in self._reached.items():
            place = TopicPartition(self._topic.topic, p)
            low, high = self._consumer.get_watermark_offsets(place, timeout=10)
            if low > at + 1 and high > at + 1:
                raise Unreadable(
                    f"{self._topic}: partition {p} begins at {low}, the run at {at + 1}"
                )
            yield p, max(at, low - 1)

    def _has(self, partition: int, upto: int) -> bool:
        # At its end nothing is missing: a batch ends where the log did, or before.
        if partition not in self._reached:
            raise Unreadable(
                f"{self._topic}: partition {partition} was added meanwhile"
            )
        return partition in self._ended or self._reached[partition] >= upto

    def _take(self, message: Any) -> None:
        error = message.error()
        partition = message.partition()
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:
                raise KafkaException(error)
            self._ended.add(partition)
            return
        self._ended.discard(partition)
        position = message.offset()
        self._reached[partition] = position
        entry = position, message.timestamp()[1], message.value() or b""
        self._waiting.setdefault(partition, []).append(entry)


def _of_batch(
    batch: BatchEntry,
    entries: Mapping[int, list[tuple[int, int, bytes]]],
    window_ms: int,
) -> Iterator[LoggedWindow]:
    first_ms, last_ms = batch.start.end_ms, batch.end.end_ms - 1
    ends = range(first_ms + window_ms, batch.end.end_ms + 1, window_ms)
    windows: dict[int, list[Piece]] = {end_ms: [] for end_ms in ends}
    for of_partition in entries.values():
        pieces = {end_ms: Piece([], [], []) for end_ms in ends}
        for position, append_ms, payload in of_partition:
            counted_ms = min(max(append_ms, first_ms), last_ms)
            piece = cast("Any", pieces[(counted_ms // window_ms + 1) * window_ms])
            for column, value in zip(
                piece, (append_ms, position, payload), strict=True
            ):
                column.append(value)
        for end_ms, piece in pieces.items():
            windows[end_ms].append(piece)
    for end_ms, pieces_of in windows.items():
        yield LoggedWindow(end_ms, pieces_of, True, last_ms)
