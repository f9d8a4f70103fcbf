"""The trade log on Redis Streams: one stream per partition, its id the append time.

Works on Redis 7.0 or newer and on Valkey. ``<namespace>:log`` is a hash with the
log's identity, ``<namespace>:log:<p>`` the stream of partition p; an entry has one
field, ``trade``.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis
import structlog

from ingest.collector import no_collection
from ingest.log import (
    Chunk,
    Head,
    LogInfo,
    LogUnusable,
    Ranges,
    Tail,
    Tally,
    partition_of,
)
from ingest.redis_append import append_all, append_head
from ingest.redis_keys import (
    SEQUENCE_BITS,
    append_time_ms,
    decode_info,
    entry_id,
    info_key,
    position_of,
    stream_key,
)

FIELD = b"trade"
_SHIFT = pa.scalar(SEQUENCE_BITS, pa.int64())
_CHUNK = 10_000
_CAP_CHECK_ENTRIES = 5_000
_REMEMBERED_ISSUES = 65_536
# Entries beyond a cut that are counted one by one to learn the count at the cut.
_COUNT_AT_MOST = 5_000

_RawEntry = list[Any]
"""As the server sends it: id, then a list of names and values, None if deleted."""

log = structlog.get_logger()


def open_log(client: redis.Redis, namespace: str, partitions: int) -> LogInfo:
    """Return the log's identity, creating it on first use.

    The first process to come decides the number of partitions; a later one that
    asks for another number gets the log's own.
    """
    key = info_key(namespace)
    now_ms = _clock_ms(client.time())
    with client.pipeline(transaction=True) as pipe:
        pipe.hsetnx(key, "id", token_hex(6))
        pipe.hsetnx(key, "partitions", partitions)
        pipe.hsetnx(key, "created_ms", now_ms)
        pipe.hgetall(key)
        fields: dict[bytes, bytes] = pipe.execute()[-1]
    return decode_info(fields)


def find_log(client: redis.Redis, namespace: str) -> LogInfo | None:
    """Return a log's identity, None if there is no log yet."""
    fields: Any = client.hgetall(info_key(namespace))
    return decode_info(fields) if fields else None


class RedisLogWriter:
    """Appends many entries at a time; every entry is acknowledged or the call raises.

    The log is bounded twice: the job trims what it has committed, and a partition
    above its share of ``cap`` entries loses its oldest ones, with a warning and a
    count in ``dropped_at_cap``.
    """

    def __init__(
        self, client: redis.Redis, namespace: str, info: LogInfo, cap: int
    ) -> None:
        self._client = client
        self._info = info
        self._keys = [stream_key(namespace, p) for p in range(info.partitions)]
        self._heads = [append_head(key, FIELD) for key in self._keys]
        self._partitions: dict[str, int] = {}
        self._partition_cap = max(1, cap // info.partitions)
        self._since_check = 0
        self.dropped_at_cap = 0
        self.refused: Mapping[str, int] = {}
        self.tallies = [Tally() for _ in self._keys]

    def append(self, entries: Sequence[tuple[str, bytes]]) -> int:
        """Append (ISIN, payload) pairs in order; return how many were acknowledged.

        Raises redis.RedisError when the server refused or did not answer; any of the
        entries may then be in the log, and to append them again may double them.
        """
        partitions = [self._partition(isin) for isin, _ in entries]
        heads = [self._heads[partition] for partition in partitions]
        try:
            ids = append_all(self._client, heads, [payload for _, payload in entries])
        except redis.RedisError:
            for partition, count in Counter(partitions).items():
                self.tallies[partition].in_doubt += count
            raise
        self._count(partitions, ids)
        self._since_check += len(ids)
        if self._since_check >= _CAP_CHECK_ENTRIES:
            self._since_check = 0
            self._enforce_cap()
        return len(ids)

    def abandon(self) -> None:
        """Do nothing: an append that failed is in doubt already."""

    def _partition(self, isin: str) -> int:
        partition = self._partitions.get(isin)
        if partition is None:
            partition = partition_of(isin, self._info.partitions)
            # A feed has a few thousand issues; whatever it has, this stays small.
            if len(self._partitions) < _REMEMBERED_ISSUES:
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


class RedisLogReader:
    """Reads a log and says where a window ends in it. Safe to share in a process.

    ``partitions`` are those it looks at, all unless given.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        info: LogInfo,
        partitions: Sequence[int] = (),
    ) -> None:
        self.info = info
        self._partitions = tuple(partitions) or tuple(range(info.partitions))
        self._keys = {p: stream_key(namespace, p) for p in self._partitions}
        # A client of its own, on the same connections, that hands out entries as the
        # server sends them: two thirds of a read went into dictionaries nobody needs.
        self._client = redis.Redis(connection_pool=client.connection_pool)
        for command in ("XRANGE", "XREVRANGE"):
            self._client.set_response_callback(command, _as_sent)

    def clock_ms(self) -> int:
        """Return the server's clock, milliseconds since 1970."""
        return _clock_ms(self._client.time())

    def tail(self, before_ms: int) -> Tail:
        """Return the server's clock, then each partition's end before a boundary."""
        with self._client.pipeline(transaction=True) as pipe:
            # The clock first: what is appended after it has a stamp at or past it.
            pipe.time()
            for key in self._keys.values():
                pipe.xrevrange(key, f"({before_ms}-0", "-", count=1)
                pipe.xrange(key, f"{before_ms}-0", "+", count=_COUNT_AT_MOST)
                pipe.xinfo_stream(key)
            clock, *replies = pipe.execute(raise_on_error=False)
        ends, beyond, infos = replies[0::3], replies[1::3], replies[2::3]
        _raise_errors([clock, *ends, *beyond])
        return Tail(
            _clock_ms(clock),
            self._partitions,
            tuple(position_of(end[0][0]) if end else 0 for end in ends),
            tuple(
                None if len(after) == _COUNT_AT_MOST else _added(info) - len(after)
                for info, after in zip(infos, beyond, strict=True)
            ),
        )

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        """Yield the entries with ``after < position <= upto``, by partition."""
        for partition, (after, upto) in ranges.items():
            while upto > after:
                with no_collection():
                    chunk = self._read_chunk(partition, after, upto)
                if chunk is None:
                    break
                yield partition, chunk
                after = chunk.upto

    def _read_chunk(self, partition: int, after: int, upto: int) -> Chunk | None:
        first = entry_id(max(after, 0))
        raw: Any = self._client.xrange(
            self._keys[partition], f"({first}", entry_id(upto), count=_CHUNK
        )
        if not raw:
            return None
        return _chunk(raw, upto if len(raw) < _CHUNK else position_of(raw[-1][0]))

    def head(self) -> Head:
        """Return the append time of the oldest entry and what went before it."""
        with self._client.pipeline(transaction=True) as pipe:
            for key in self._keys.values():
                pipe.xrange(key, count=1)
                pipe.xinfo_stream(key)
            replies = pipe.execute(raise_on_error=False)
        firsts, infos = replies[0::2], replies[1::2]
        _raise_errors(firsts)
        times = [append_time_ms(position_of(first[0][0])) for first in firsts if first]
        return Head(
            min(times, default=None),
            self._partitions,
            (0,) * len(self._partitions),
            tuple(_added(info) - _length(info) for info in infos),
        )

    def trim(self, positions: Mapping[int, int], before_ms: int) -> None:
        """Drop entries at or below ``positions`` that were appended before a time."""
        with self._client.pipeline(transaction=False) as pipe:
            for partition, position in positions.items():
                key = self._keys[partition]
                keep_from = min(position + 1, before_ms << SEQUENCE_BITS)
                pipe.xtrim(key, minid=entry_id(keep_from), approximate=True)
            pipe.execute()


def _as_sent(reply: Any, **_options: Any) -> Any:
    return reply


def _raise_errors(replies: Sequence[Any]) -> None:
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply


def _added(info: Any) -> int:
    """Return how many entries a stream ever had; one that is not there yet, none."""
    if isinstance(info, redis.ResponseError) and "no such key" in str(info):
        return 0
    _raise_errors([info])
    return int(info["entries-added"])


def _length(info: Any) -> int:
    return 0 if isinstance(info, redis.ResponseError) else int(info["length"])


def _chunk(raw: Sequence[_RawEntry], upto: int) -> Chunk:
    ids = pa.array([entry[0] for entry in raw], pa.binary()).cast(pa.string())
    halves = pc.list_flatten(pc.split_pattern(ids, "-")).cast(pa.int64())
    append_ms, numbers = halves[0::2], halves[1::2]
    if pc.max(numbers).as_py() >> SEQUENCE_BITS:
        raise LogUnusable(
            f"stream ids {raw[0][0]!r} to {raw[-1][0]!r}: "
            "more than 2^21 entries in one ms"
        )
    positions = pc.bit_wise_or(pc.shift_left(append_ms, _SHIFT), numbers)
    payloads = [_payload(entry[1]) for entry in raw]
    return Chunk(positions, append_ms, pa.array(payloads, pa.binary()), upto)


def _payload(fields: Sequence[bytes] | None) -> bytes:
    if fields and fields[0] == FIELD:
        return fields[1]
    # An entry without our field is somebody's mistake: an empty payload is refused
    # further on as not_json, like any other malformed trade.
    named = fields or ()
    return dict(zip(named[::2], named[1::2], strict=True)).get(FIELD, b"")


def _clock_ms(time_reply: Any) -> int:
    seconds, micros = time_reply
    return int(seconds) * 1000 + int(micros) // 1000
