"""What is appended to a trade log, every entry once, while somebody follows it."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Set
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import structlog
from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from gateway.upstream.shared_answer import AskedInThread
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogInfo, LogUnusable, partition_of
from tickthrottle_client.log_v1 import (
    FIELD,
    append_time_ms,
    decode_info,
    info_key,
    position_of,
    stream_key,
)

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.kafka_log_reader import KafkaLogReader

T = TypeVar("T")

ANSWER_S = 1.0
"""How long Redis may take to answer a look."""

TOPIC_ANSWER_S = 5.0
"""How long brokers may take to answer a look."""

MOST_ENTRIES = 1_000
"""So many entries of a partition one look reads; the rest is the next one's."""

_FUTURE_MS = 86_400_000
"""A boundary so far ahead of the clock is past the end of every partition."""

UNREADABLE = (LogUnusable, ValueError, LookupError)
"""What is raised for data in Redis that no version of ours, or another one, wrote."""

log = structlog.get_logger()


class LogUnread(Exception):
    """The log cannot be read; the message is a sentence that says why."""


@asynccontextmanager
async def answering_redis() -> AsyncIterator[None]:
    """Read a log in Redis in the block. Raises LogUnread for whatever goes wrong."""
    try:
        async with asyncio.timeout(ANSWER_S):
            yield
    except NoPermissionError:
        raise LogUnread(
            "the gateway's user of Redis may not read the trade log: see Rights in "
            "docs/redis.md"
        ) from None
    except (RedisError, OSError) as error:
        # A timeout is an OSError, with nothing to say.
        silence = f"no answer within {ANSWER_S:g} s"
        raise LogUnread(f"Redis: {str(error) or silence}") from None
    except UNREADABLE as error:
        raise LogUnread(in_sentence(error)) from None


def in_sentence(error: Exception) -> str:
    """Say what of the data in Redis is ``UNREADABLE``."""
    is_missing = isinstance(error, LookupError)
    return f"a field is missing in Redis: {error}" if is_missing else str(error)


def no_log(namespace: str) -> str:
    """Say that there is no trade log in Redis."""
    return f"there is no trade log under {info_key(namespace)}"


async def read_info(redis: Redis, namespace: str) -> LogInfo:
    """Return which log there is in Redis. Raises LogUnread if there is none."""
    fields: Any = await redis.hgetall(info_key(namespace))
    if not fields:
        raise LogUnread(no_log(namespace))
    return decode_info(fields)


class AskedTopic(Generic[T]):
    """Reads a topic in a thread of its own: brokers may take seconds to answer.

    ``name`` is the thread's, ``silence`` and ``fault`` say what went wrong. An answer
    that comes late is kept: nobody else will have what it has read.
    """

    def __init__(self, topic: KafkaTopic, name: str, silence: str, fault: str) -> None:
        self._topic = topic
        self._silence, self._fault = silence, fault
        self._reader: KafkaLogReader | None = None
        self._thread = AskedInThread[T | LogUnread](name, keeps_late=True)

    async def ask(
        self, question: "Callable[[KafkaLogReader], T]", within_s: float
    ) -> T:
        """Return what ``question`` reads; after an error with a new reader.

        Raises LogUnread.
        """
        try:
            answer = await self._thread.ask(partial(self._answer, question), within_s)
        except TimeoutError:
            raise LogUnread(self._silence) from None
        if isinstance(answer, LogUnread):
            raise answer
        return answer

    def _answer(self, question: "Callable[[KafkaLogReader], T]") -> T | LogUnread:
        try:
            from ingest.kafka.kafka_log_reader import KafkaLogReader
            from tickthrottle_client.kafka_client import open_topic

            if self._reader is None:
                self._reader = KafkaLogReader(self._topic, open_topic(self._topic))
            return question(self._reader)
        except (LogAway, LogUnusable) as error:
            problem = str(error)
        except Exception:
            log.exception(self._fault)
            problem = f"{self._topic}: a fault of the gateway, see the log"
        # A topic that was made again has another reader.
        self._reader = None
        return LogUnread(problem)


def ends_of(reader: "KafkaLogReader") -> dict[int, int]:
    """Return the position of the last entry of each partition of a topic."""
    tail = reader.tail(time.time_ns() // 1_000_000 + _FUTURE_MS)
    return dict(zip(tail.partitions, tail.positions, strict=True))


def read_topic_entries(
    reader: "KafkaLogReader", ranges: dict[int, tuple[int, int]]
) -> list[tuple[int, bytes]]:
    """Return append time, ms, and bytes of entries, in the order of the former."""
    entries: list[tuple[int, bytes]] = []
    for _, chunk in reader.read(ranges):
        columns = chunk.append_ms.to_pylist(), chunk.payloads.to_pylist()
        entries += zip(*columns, strict=True)
    entries.sort(key=lambda entry: entry[0])
    return entries


class TailPiece(NamedTuple):
    """Entries in the order of the log: append time, ms, and bytes.

    There may be more now if it ``is_full``. If it ``is_cut``, some before it were
    never read.
    """

    entries: list[tuple[int, bytes]]
    is_full: bool = False
    is_cut: bool = False


class TradeTail(Protocol):
    """The end of a trade log."""

    def begin(self) -> None:
        """Forget how far it was read: what follows begins now."""

    async def read(self, isins: Set[str]) -> TailPiece:
        """Return what came since the last time where these instruments are.

        Entries of others are among them. Raises LogUnread.
        """


class RedisTradeTail:
    """A log in Redis Streams: the partitions of the instruments that are followed."""

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace
        self._info: LogInfo | None = None
        self._upto: dict[int, Any] = {}

    def begin(self) -> None:
        """Forget how far it was read."""
        self._info, self._upto = None, {}

    async def read(self, isins: Set[str]) -> TailPiece:
        """Return what came since the last time. Raises LogUnread."""
        async with answering_redis():
            return await self._read(isins)

    async def _read(self, isins: Set[str]) -> TailPiece:
        info = await read_info(self._redis, self._namespace)
        # Another log has positions of its own.
        is_cut = self._info is not None and self._info != info
        if is_cut:
            self._upto = {}
        self._info = info
        partitions = {partition_of(isin, info.partitions) for isin in isins}
        self._upto = {p: upto for p, upto in self._upto.items() if p in partitions}
        for partition in partitions - self._upto.keys():
            key = stream_key(self._namespace, partition)
            last: Any = await self._redis.xrevrange(key, count=1)
            self._upto[partition] = last[0][0] if last else b"0-0"
        followed = sorted(self._upto)
        async with self._redis.pipeline(transaction=False) as pipe:
            for partition in followed:
                key = stream_key(self._namespace, partition)
                after = b"(" + self._upto[partition]
                pipe.xrange(key, min=after, count=MOST_ENTRIES)
            replies: Any = await pipe.execute()
        entries: list[tuple[int, int, bytes]] = []
        is_full = False
        for partition, reply in zip(followed, replies, strict=True):
            is_full |= len(reply) >= MOST_ENTRIES
            for raw_id, fields in reply:
                self._upto[partition] = raw_id
                position = position_of(raw_id)
                entries.append((position, partition, fields.get(FIELD, b"")))
        entries.sort(key=lambda entry: entry[:2])
        read = [(append_time_ms(position), payload) for position, _, payload in entries]
        return TailPiece(read, is_full, is_cut)


class KafkaTradeTail:
    """A log in a topic of Kafka; an instrument may be in any partition."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._upto: dict[int, int] | None = None
        self._reader: KafkaLogReader | None = None
        self._topic = AskedTopic[TailPiece](
            topic,
            "trades",
            f"{topic}: no broker answers within {TOPIC_ANSWER_S:g} s",
            "trades of the log could not be read",
        )

    def begin(self) -> None:
        """Forget how far it was read."""
        self._upto = None

    async def read(self, isins: Set[str]) -> TailPiece:
        """Return what came since the last time. Raises LogUnread."""
        return await self._topic.ask(self._read, TOPIC_ANSWER_S)

    def _read(self, reader: "KafkaLogReader") -> TailPiece:
        ends = ends_of(reader)
        upto = self._upto if reader is self._reader else None
        self._reader = reader
        if upto is None:
            self._upto = ends
            return TailPiece([])
        # A partition that was added since then was empty.
        spans = {p: (upto.get(p, -1), end) for p, end in ends.items()}
        reading = {p: (a, min(end, a + MOST_ENTRIES)) for p, (a, end) in spans.items()}
        entries = read_topic_entries(reader, reading)
        self._upto = {p: end for p, (_, end) in reading.items()}
        is_full = any(reading[p][1] < end for p, (_, end) in spans.items())
        return TailPiece(entries, is_full)
