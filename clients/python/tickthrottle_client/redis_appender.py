"""Appends to a trade log in Redis Streams, and only to the log that it was opened on.

A script compares the log's identity before it appends: a log that was emptied meanwhile
gets nothing, not even of an append that was under way.
"""

import logging
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from secrets import token_hex
from typing import Any, Self

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from tickthrottle_client.log_v1 import (
    CAP_CHECK_ENTRIES,
    FIELD,
    LogAway,
    LogInfo,
    LogUnusable,
    decode_info,
    encode_info,
    info_key,
    partition_cap,
    partition_of,
    position_of,
    stream_key,
)
from tickthrottle_client.receipt_v1 import AppendTally
from tickthrottle_client.redis_address import check_redis_url, why_unusable
from tickthrottle_client.redis_faults import TRANSIENT, in_words, is_passing
from tickthrottle_client.redis_primary import connect_async
from tickthrottle_client.server_memory import ServerMemory
from tickthrottle_client.server_url import server_address

_CONNECT_TIMEOUT_S = 2.0
_ANSWER_TIMEOUT_S = 3.0

log = logging.getLogger(__name__)

# An append that is not made has no answer but the identity of the log.
_APPEND = """
local id = redis.call('HGET', KEYS[1], 'id')
if id ~= ARGV[1] then return id end
local ids = {}
for n = 3, #ARGV, 2 do
  ids[#ids + 1] = redis.call('XADD', KEYS[ARGV[n] + 2], '*', ARGV[2], ARGV[n + 1])
end
return ids
"""


class RedisAppender:
    """Appends many entries at a time; all of them, or none that anybody knows of."""

    most_entries = 1_000
    """Of one append: for so long the server does nothing else, two milliseconds."""

    def __init__(
        self, client: Redis, address: str, namespace: str, info: LogInfo, cap: int
    ) -> None:
        self.info = info
        self.tallies = [AppendTally() for _ in range(info.partitions)]
        self.refused: Counter[str] = Counter()
        self.dropped_at_cap = 0
        self._client = client
        self._address = address
        streams = [stream_key(namespace, p) for p in range(info.partitions)]
        self._keys = [info_key(namespace), *streams]
        self._cap = partition_cap(cap, info.partitions)
        self._append = client.register_script(_APPEND)
        self._since_check = 0
        self._may_be_away = False

    @classmethod
    async def open(
        cls, url: str, namespace: str, partitions: int, cap: int, may_evict: bool
    ) -> Self:
        """Open a log, which is created if there is none.

        A server that may evict keys is refused unless ``may_evict``. Raises LogAway and
        LogUnusable.
        """
        address = server_address(url)
        try:
            client = connect_async(
                check_redis_url(url),
                socket_connect_timeout=_CONNECT_TIMEOUT_S,
                socket_timeout=_ANSWER_TIMEOUT_S,
                # What is sent again has to be counted.
                retry=Retry(NoBackoff(), 0),
            )
        except ValueError as error:
            raise LogUnusable(f"address {address}: {error}") from None
        try:
            async with _told(address):
                await _check_server(client, may_evict)
                info = await _identify(client, info_key(namespace), partitions)
        except BaseException:
            await client.aclose()
            raise
        return cls(client, address, namespace, info, cap)

    async def append(self, entries: Sequence[tuple[str, bytes]]) -> None:
        """Append (ISIN, payload) pairs in order.

        Raises LogAway, after which the same entries may be appended again: if they had
        been sent, they are in doubt from then on. Raises LogUnusable if the log is
        another one now, or if the server refuses.
        """
        partitions = [partition_of(isin, self.info.partitions) for isin, _ in entries]
        arguments: list[Any] = [self.info.log_id, FIELD]
        for partition, (_, payload) in zip(partitions, entries, strict=True):
            arguments += (partition, payload)
        async with _told(self._address):
            if self._may_be_away:
                # What is not sent, because nobody answers, is not in doubt.
                await self._client.ping()
                self._may_be_away = False
            ids = await self._send(partitions, arguments)
        if not isinstance(ids, list):
            name = "gone" if ids is None else ids.decode(errors="replace")
            raise LogUnusable(
                f"the trade log at {self._address} is another one now: it was "
                f"{self.info.log_id}, it is {name}; start anew to append to it"
            )
        for partition, entry_id in zip(partitions, ids, strict=True):
            tally = self.tallies[partition]
            tally.acknowledged += 1
            tally.last = position_of(entry_id)
            if tally.first is None:
                tally.first = tally.last
        self._since_check += len(entries)
        if self._since_check >= CAP_CHECK_ENTRIES:
            # What cannot be looked at now is looked at after the next append.
            with suppress(LogAway):
                async with _told(self._address):
                    await self._enforce_cap()
                self._since_check = 0

    async def abandon(self) -> None:
        """Do nothing: an append that failed is in doubt already."""

    async def close(self) -> None:
        with suppress(*TRANSIENT):
            await self._client.aclose()

    async def _send(self, partitions: Sequence[int], arguments: list[Any]) -> Any:
        try:
            return await self._append(keys=self._keys, args=arguments)
        except (exceptions.ResponseError, exceptions.BusyLoadingError):
            # An answer: nothing was appended.
            raise
        except BaseException:
            self._may_be_away = True
            for partition, count in Counter(partitions).items():
                self.tallies[partition].in_doubt += count
            raise

    async def _enforce_cap(self) -> None:
        for key in self._keys[1:]:
            dropped: Any = await self._client.xtrim(
                key, maxlen=self._cap, approximate=True
            )
            if dropped:
                self.dropped_at_cap += dropped
                log.warning(
                    "the log is full: %d of its oldest trades were dropped from %s; "
                    "is the throttle running?",
                    dropped,
                    key,
                )


@asynccontextmanager
async def _told(address: str) -> AsyncIterator[None]:
    """Raise in words what the client raises."""
    try:
        yield
    except exceptions.RedisError as error:
        if is_passing(error):
            words = f"no Redis or Valkey server takes trades at {address} ({error})"
            raise LogAway(words) from None
        words = f"the server at {address} refuses: {in_words(error)}"
        raise LogUnusable(words) from None


async def _check_server(client: Redis, may_evict: bool) -> None:
    try:
        server = await client.info()
    except exceptions.NoPermissionError:
        return
    if (reason := why_unusable(server)) is not None:
        raise LogUnusable(reason)
    if (reason := ServerMemory.decode(server).why_forgetful()) is not None:
        if not may_evict:
            raise LogUnusable(f"{reason}. may_evict=True appends all the same")
        log.warning(reason)


async def _identify(client: Redis, key: str, partitions: int) -> LogInfo:
    seconds, micros = await client.time()
    now_ms = int(seconds) * 1_000 + int(micros) // 1_000
    new = LogInfo(token_hex(6), partitions, now_ms)
    async with client.pipeline(transaction=True) as pipe:
        for name, value in encode_info(new).items():
            pipe.hsetnx(key, name, str(value))
        pipe.hgetall(key)
        return decode_info((await pipe.execute())[-1])
