"""Looks at the end of a trade log in Redis Streams."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from gateway.health.log_ends import PartitionEnd, decode_redis_ends, no_log
from gateway.health.pipeline_reader import ANSWER_S, NO_ANSWER
from gateway.operators.firehose.log_piece import (
    LogEntry,
    LogPiece,
    LogUnseen,
    share_out,
)
from ingest.tradelog.contract import LogInfo, LogUnusable
from ingest.tradelog.redis_positions import (
    FIELD,
    append_time_ms,
    decode_info,
    entry_id,
    info_key,
    position_of,
    stream_key,
)


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
        """Return what came since the look before, ``most`` entries of it at most.

        At least one of each partition that grew. Raises LogUnseen.
        """
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._look(most)
        except NoPermissionError:
            raise LogUnseen(
                "the gateway's user of Redis may not read the trade log: see Rights in "
                "docs/redis.md"
            ) from None
        except (RedisError, OSError) as error:
            # A timeout is an OSError, with nothing to say.
            raise LogUnseen(f"Redis: {str(error) or NO_ANSWER}") from None
        except (LogUnusable, ValueError) as error:
            raise LogUnseen(str(error)) from None

    async def _look(self, most: int) -> LogPiece:
        info = self._info
        if info is None:
            fields: Any = await self._redis.hgetall(info_key(self._namespace))
            if not fields:
                raise LogUnseen(no_log(self._namespace))
            info = decode_info(fields)
        async with self._redis.pipeline(transaction=True) as pipe:
            pipe.hgetall(info_key(self._namespace))
            for partition in range(info.partitions):
                pipe.xinfo_stream(stream_key(self._namespace, partition))
            fields, *replies = await pipe.execute(raise_on_error=False)
        if isinstance(fields, Exception):
            raise fields
        if not fields or decode_info(fields) != info:
            self.begin()
            raise LogUnseen("the trade log is being made anew")
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
