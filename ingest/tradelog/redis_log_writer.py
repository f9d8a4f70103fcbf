"""The trade log on Redis Streams, written: many entries at a time.

A client library takes 10 us an entry for its command and its reply. All that differs
between these commands is a stream and a payload, so they are built here.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import redis
import structlog

from ingest.tradelog.contract import AppendTally, LogInfo, partition_of
from tickthrottle_client.log_v1 import (
    CAP_CHECK_ENTRIES,
    FIELD,
    partition_cap,
    position_of,
    stream_key,
)

_REMEMBERED_INSTRUMENTS = 65_536
_AT_ONCE = 250
"""Commands that are sent together: the server works while the next are encoded."""

_WAIT_MS = 1_000
"""How long replicas may take; the server answers sooner once they have all of it."""

log = structlog.get_logger()


class RedisLogWriter:
    """Appends many entries at a time; every entry is acknowledged or the call raises.

    The log is bounded twice: the job trims what it has committed, and a partition
    above its share of ``cap`` entries loses its oldest ones, with a warning and a
    count in ``dropped_at_cap``. An entry is acknowledged when so many ``replicas``
    have it, too.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        info: LogInfo,
        cap: int,
        replicas: int = 0,
    ) -> None:
        self._client = client
        self._replicas = replicas
        self._info = info
        self._keys = [stream_key(namespace, p) for p in range(info.partitions)]
        self._heads = [append_head(key, FIELD) for key in self._keys]
        self._partitions: dict[str, int] = {}
        self._partition_cap = partition_cap(cap, info.partitions)
        self._since_check = 0
        self.dropped_at_cap = 0
        self.refused: Mapping[str, int] = {}
        self.tallies = [AppendTally() for _ in self._keys]

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        Raises redis.RedisError when the server refused or did not answer; any of the
        entries may then be in the log, and to append them again may double them.
        """
        partitions = [self._partition(isin) for isin, _ in entries]
        heads = [self._heads[partition] for partition in partitions]
        try:
            payloads = [payload for _, payload in entries]
            ids = append_all(self._client, heads, payloads, self._replicas)
        except redis.RedisError:
            for partition, count in Counter(partitions).items():
                self.tallies[partition].in_doubt += count
            raise
        self._count(partitions, ids)
        self._since_check += len(ids)
        if self._since_check >= CAP_CHECK_ENTRIES:
            self._since_check = 0
            self._enforce_cap()
        return len(ids)

    def abandon(self) -> None:
        """Do nothing: an append that failed is in doubt already."""

    def _partition(self, isin: str) -> int:
        partition = self._partitions.get(isin)
        if partition is None:
            partition = partition_of(isin, self._info.partitions)
            # A feed has a few thousand instruments; whatever it has, this stays small.
            if len(self._partitions) < _REMEMBERED_INSTRUMENTS:
                self._partitions[isin] = partition
        return partition

    def _count(self, partitions: Sequence[int], ids: Sequence[bytes]) -> None:
        """Take in where each entry of an append is; of two in a partition the last."""
        ends = dict(zip(partitions, ids, strict=True))
        starts = dict(zip(reversed(partitions), reversed(ids), strict=True))
        for partition, count in Counter(partitions).items():
            tally = self.tallies[partition]
            tally.acknowledged += count
            tally.last = position_of(ends[partition])
            if tally.first is None:
                tally.first = position_of(starts[partition])

    def _enforce_cap(self) -> None:
        for partition, key in enumerate(self._keys):
            dropped = self._client.xtrim(
                key, maxlen=self._partition_cap, approximate=True
            )
            if dropped:
                self.dropped_at_cap += dropped
                log.warning(
                    "the log is full: its oldest trades were dropped. "
                    "Is the throttle running?",
                    partition=partition,
                    dropped=dropped,
                    cap=self._partition_cap,
                )


def append_head(key: str, field: bytes) -> bytes:
    """Return the beginning of every command that appends to a stream.

    What is missing is the payload: its length, then itself, each with a line's end.
    """
    words = (b"XADD", key.encode(), b"*", field)
    text = b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words)
    return b"*%d\r\n%b$" % (len(words) + 1, text)


def append_all(
    client: redis.Redis,
    heads: Sequence[bytes],
    payloads: Sequence[bytes],
    replicas: int = 0,
) -> list[bytes]:
    """Append each payload to the stream of its head; return the new entries' ids.

    Raises redis.RedisError if the server refused an entry or did not answer, or if
    fewer than ``replicas`` have all of them within a second; any of the entries may
    then be in their streams.
    """
    pool = client.connection_pool
    connection: Any = pool.get_connection()
    try:
        for begin in range(0, len(payloads), _AT_ONCE):
            end = begin + _AT_ONCE
            pairs = zip(heads[begin:end], payloads[begin:end], strict=True)
            commands = [
                b"%b%d\r\n%b\r\n" % (head, len(payload), payload)
                for head, payload in pairs
            ]
            connection.send_packed_command([b"".join(commands)])
        if replicas:
            # By the connection that wrote: the server waits for what that has written.
            connection.send_command("WAIT", replicas, _WAIT_MS)
        replies = [_reply(connection) for _ in payloads]
        reached = _reply(connection) if replicas else 0
    except BaseException:
        # What is on its way must not be taken for the reply to another command.
        connection.disconnect()
        raise
    finally:
        pool.release(connection)
    for reply in (*replies, reached):
        if isinstance(reply, redis.ResponseError):
            raise reply
    if reached < replicas:
        raise redis.TimeoutError(f"{reached} of {replicas} replicas have the trades")
    return replies


def _reply(connection: Any) -> Any:
    try:
        return connection.read_response(disable_decoding=True)
    except redis.ResponseError as error:
        # Of this entry alone: the replies to all others are still to be read.
        return error
