"""What is appended to a trade log, every entry once, while somebody follows it."""

import asyncio
from collections.abc import Set
from typing import Any, NamedTuple, Protocol

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, RedisError

from ingest.tradelog.contract import LogInfo, LogUnusable, partition_of
from ingest.tradelog.redis_positions import (
    FIELD,
    append_time_ms,
    decode_info,
    info_key,
    position_of,
    stream_key,
)

ANSWER_S = 1.0
"""How long Redis may take to answer a look."""

MOST_ENTRIES = 1_000
"""So many entries of a partition one look reads; the rest is the next one's."""


class LogUnread(Exception):
    """The log cannot be read; the message is a sentence that says why."""


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
        try:
            async with asyncio.timeout(ANSWER_S):
                return await self._read(isins)
        except NoPermissionError:
            raise LogUnread(
                "the gateway's user of Redis may not read the trade log: see Rights in "
                "docs/redis.md"
            ) from None
        except (RedisError, OSError) as error:
            # A timeout is an OSError, with nothing to say.
            silence = f"no answer within {ANSWER_S:g} s"
            raise LogUnread(f"Redis: {str(error) or silence}") from None
        except (LogUnusable, ValueError) as error:
            raise LogUnread(str(error)) from None

    async def _read(self, isins: Set[str]) -> TailPiece:
        fields: Any = await self._redis.hgetall(info_key(self._namespace))
        if not fields:
            key = info_key(self._namespace)
            raise LogUnread(f"there is no trade log under {key}")
        info = decode_info(fields)
        # Another log has positions of its own.
        is_cut = self._info is not None and self._info != info
        if is_cut:
            self._upto = {}
        self._info = info
        wanted = {partition_of(isin, info.partitions) for isin in isins}
        self._upto = {p: upto for p, upto in self._upto.items() if p in wanted}
        new = wanted - self._upto.keys()
        for partition in new:
            key = stream_key(self._namespace, partition)
            last: Any = await self._redis.xrevrange(key, count=1)
            self._upto[partition] = last[0][0] if last else b"0-0"
        partitions = sorted(self._upto)
        async with self._redis.pipeline(transaction=False) as pipe:
            for partition in partitions:
                key, after = (
                    stream_key(self._namespace, partition),
                    self._upto[partition],
                )
                pipe.xrange(key, min=b"(" + after, count=MOST_ENTRIES)
            found: Any = await pipe.execute()
        entries: list[tuple[int, int, bytes]] = []
        is_full = False
        for partition, some in zip(partitions, found, strict=True):
            is_full |= len(some) >= MOST_ENTRIES
            for raw_id, of_it in some:
                self._upto[partition] = raw_id
                position = position_of(raw_id)
                entries.append((position, partition, of_it.get(FIELD, b"")))
        entries.sort(key=lambda entry: entry[:2])
        read = [(append_time_ms(position), payload) for position, _, payload in entries]
        return TailPiece(read, is_full, is_cut)
