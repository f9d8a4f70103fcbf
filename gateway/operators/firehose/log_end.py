"""Looks at the end of a trade log, in Redis Streams or in a topic of Kafka."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from redis.asyncio import Redis

from gateway.health.kafka_ends import KAFKA_ANSWER_S, no_broker
from gateway.health.log_ends import PartitionEnd, decode_redis_ends
from gateway.operators.firehose.firehose_sample import LogEntry, LogPiece, share_out
from gateway.upstream.trade_tail import (
    AskedTopic,
    LogUnread,
    answering_redis,
    ends_of,
    read_info,
    read_topic_entries,
)
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogInfo
from tickthrottle_client.log_v1 import (
    FIELD,
    append_time_ms,
    decode_info,
    entry_id,
    info_key,
    position_of,
    stream_key,
)

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.kafka_log_reader import KafkaLogReader


class LogEnd(Protocol):
    """The end of the trade log, looked at again and again while somebody watches."""

    def begin(self) -> None:
        """Forget the look before: the next one is the first."""

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before, reading about ``most`` entries.

        At least one of each partition that grew; the first look brings nothing. Raises
        LogUnread.
        """


class KafkaLogEnd:
    """The end of a topic of Kafka.

    Markers of transactions have positions, too: they count as appended, and are not
    read.
    """

    def __init__(self, topic: KafkaTopic) -> None:
        self._ends: dict[int, int] = {}
        self._reader: KafkaLogReader | None = None
        self._is_beginning = True
        self._topic = AskedTopic[LogPiece](
            topic,
            "firehose",
            no_broker(topic, KAFKA_ANSWER_S),
            "the end of the log could not be read",
        )

    def begin(self) -> None:
        """Forget the look before."""
        self._is_beginning = True

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before. Raises LogUnread."""
        return await self._topic.ask(partial(self._look, most), KAFKA_ANSWER_S)

    def _look(self, most: int, reader: "KafkaLogReader") -> LogPiece:
        before, self._ends = self._ends, ends_of(reader)
        is_beginning = self._is_beginning or reader is not self._reader
        self._is_beginning, self._reader = False, reader
        if is_beginning:
            return LogPiece()
        # A partition that was added since then was empty.
        appended = {p: end - before.get(p, -1) for p, end in self._ends.items()}
        shares = share_out(appended, most)
        ranges = {p: (self._ends[p] - n, self._ends[p]) for p, n in shares.items()}
        entries = [LogEntry(*entry) for entry in read_topic_entries(reader, ranges)]
        return LogPiece(max(0, sum(appended.values())), entries)


class RedisLogEnd:
    """Asks where all partitions end, then for the newest entries up to there.

    So what was appended and what was read of it are of one moment.
    """

    def __init__(self, redis: Redis, namespace: str) -> None:
        self._redis = redis
        self._namespace = namespace
        self._info: LogInfo | None = None
        self._ends: Mapping[int, PartitionEnd] = {}

    def begin(self) -> None:
        """Forget the look before."""
        self._info, self._ends = None, {}

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before. Raises LogUnread."""
        async with answering_redis():
            return await self._look(most)

    async def _look(self, most: int) -> LogPiece:
        info = self._info
        if info is None:
            info = await read_info(self._redis, self._namespace)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(info_key(self._namespace))
            for partition in range(info.partitions):
                pipe.xinfo_stream(stream_key(self._namespace, partition))
            fields, *replies = await pipe.execute(raise_on_error=False)
        if isinstance(fields, Exception):
            raise fields
        if not fields or decode_info(fields) != info:
            self.begin()
            raise LogUnread("the trade log is being made anew")
        ends = decode_redis_ends(info, replies).partitions or {}
        before, self._ends = self._ends, ends
        if self._info is None:
            self._info = info
            return LogPiece()
        appended = {
            p: (end.added or 0) - (before[p].added or 0) for p, end in ends.items()
        }
        if min(appended.values()) < 0:
            # Older than it was: restored, or emptied.
            return LogPiece()
        return LogPiece(
            sum(appended.values()),
            await self._read(before, ends, share_out(appended, most)),
        )

    async def _read(
        self,
        before: Mapping[int, PartitionEnd],
        ends: Mapping[int, PartitionEnd],
        shares: Mapping[int, int],
    ) -> list[LogEntry]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for partition, count in shares.items():
                first, last = before[partition].position, ends[partition].position
                pipe.xrevrange(
                    stream_key(self._namespace, partition),
                    "+" if last is None else entry_id(last),
                    "-" if first is None else f"({entry_id(first)}",
                    count=count,
                )
            return _entries(await pipe.execute())


def _entries(replies: Sequence[Any]) -> list[LogEntry]:
    """Return the entries of all partitions in the order of their append times."""
    entries = []
    for reply in replies:
        for raw_id, fields in reply:
            position = position_of(raw_id)
            payload = fields.get(FIELD, b"")
            entries.append((position, LogEntry(append_time_ms(position), payload)))
    entries.sort(key=lambda entry: entry[0])
    return [entry for _, entry in entries]
