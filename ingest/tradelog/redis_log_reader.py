"""The trade log on Redis Streams, read: one stream a partition, its id the append time.

Works on Redis 7.0 or newer and on Valkey. ``<namespace>:log`` is a hash with the
log's identity, ``<namespace>:log:<p>`` the stream of partition p; an entry has one
field, ``trade``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from secrets import token_hex
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import redis

from ingest.tradelog.contract import (
    PIECE_BYTES,
    Chunk,
    Head,
    LogInfo,
    LogUnusable,
    Ranges,
    Tail,
)
from tickthrottle_client.gc_pause import no_collection
from tickthrottle_client.log_v1 import (
    FIELD,
    SEQUENCE_BITS,
    append_time_ms,
    decode_info,
    encode_info,
    entry_id,
    info_key,
    position_of,
    stream_key,
)
from tickthrottle_client.redis_address import why_unusable

_SHIFT = pa.scalar(SEQUENCE_BITS, pa.int64())
_CHUNK = 2_000
_PIECE = 1_000
_FIRST_PIECE = 250
# Entries beyond a cut that are counted one by one to learn the count at the cut.
_COUNT_AT_MOST = 5_000
# Entries dropped in one step: a few milliseconds of the server. By default it drops
# 10,000 and leaves the rest, however many there are.
_TRIMMED_AT_ONCE = 50_000

Fields = Mapping[bytes, bytes]

_RawEntry = list[Any]
"""As the server sends it: id, then a list of names and values, None if deleted."""


def open_log(client: redis.Redis, namespace: str, partitions: int) -> LogInfo:
    """Return the log's identity, creating it on first use.

    The first process to come decides the number of partitions; a later one that
    asks for another number gets the log's own. Raises LogUnusable.
    """
    check_server(client)
    key = info_key(namespace)
    new = LogInfo(token_hex(6), partitions, _clock_ms(client.time()))
    with client.pipeline(transaction=True) as pipe:
        for name, value in encode_info(new).items():
            pipe.hsetnx(key, name, value)
        pipe.hgetall(key)
        fields: dict[bytes, bytes] = pipe.execute()[-1]
    return decode_info(fields)


def check_server(client: redis.Redis) -> None:
    """Raise LogUnusable for a server that does not stand alone, if it may be asked."""
    with suppress(redis.exceptions.NoPermissionError):
        server: Any = client.info("server")
        if (reason := why_unusable(server)) is not None:
            raise LogUnusable(reason)


def find_log(client: redis.Redis, namespace: str) -> LogInfo | None:
    """Return a log's identity, None if there is no log yet."""
    fields: Any = client.hgetall(info_key(namespace))
    return decode_info(fields) if fields else None


def scan_stream(
    client: redis.Redis,
    key: str,
    newest_first: bool = False,
    low: str = "-",
    piece: int = _PIECE,
) -> Iterator[tuple[bytes, Fields]]:
    """Yield a stream's entries from ``low`` on; memory holds ``piece`` of them."""
    high = "+"
    while True:
        if newest_first:
            entries: Any = client.xrevrange(key, high, low, count=piece)
        else:
            entries = client.xrange(key, low, high, count=piece)
        yield from entries
        if len(entries) < piece:
            return
        edge = f"({entries[-1][0].decode()}"
        low, high = (low, edge) if newest_first else (edge, high)


def next_piece(count: int, entries: int, size: int, most: int) -> int:
    """Return how many entries to ask for, after ``entries`` of ``size`` bytes in all.

    As many as are ``PIECE_BYTES``, but at most four times as many as before. The
    server knows no bound in bytes, so what came last is the measure of what comes.
    """
    fitting = PIECE_BYTES * entries // max(size, 1) if entries else count
    return max(1, min(fitting, 4 * count, most))


class RedisLogReader:
    """Reads a log and says where a window ends in it. Safe to share in a process.

    ``partitions`` are those it looks at, all unless given. A piece is at most 2,000
    entries and about ``PIECE_BYTES``: its size follows that of the entries read before
    it and of the last one asked for.
    """

    margin_ms = 0

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        info: LogInfo,
        partitions: Sequence[int] = (),
    ) -> None:
        self.info = info
        self._namespace = namespace
        self._partitions = tuple(partitions) or tuple(range(info.partitions))
        self._keys = {p: stream_key(namespace, p) for p in self._partitions}
        self._pieces = dict.fromkeys(self._partitions, _FIRST_PIECE)
        self._counted = 0
        # A client of its own, on the same connections, that hands out entries as the
        # server sends them: two thirds of a read went into dictionaries nobody needs.
        self._client = redis.Redis(connection_pool=client.connection_pool)
        for command in ("XRANGE", "XREVRANGE"):
            self._client.set_response_callback(command, lambda reply, **_: reply)

    def clock_ms(self) -> int:
        return _clock_ms(self._client.time())

    def server_id(self) -> str:
        """Return the server's run id: it has another one after each start."""
        server: Any = self._client.info("server")
        return str(server["run_id"])

    def partitions(self) -> tuple[int, ...]:
        return self._partitions

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        partitions = tuple(partitions) or self._partitions
        if not self._counted:
            spans = [(self._keys[p], "+", "-") for p in partitions]
            fitting = min(map(_fitting, self._last_ones(spans)))
            self._counted = min(fitting, _COUNT_AT_MOST)
        with self._client.pipeline(transaction=True) as pipe:
            # The clock first: what is appended after it has a stamp at or past it.
            pipe.time()
            for key in (self._keys[p] for p in partitions):
                pipe.xrevrange(key, f"({before_ms}-0", "-", count=1)
                pipe.xrange(key, f"{before_ms}-0", "+", count=self._counted)
                pipe.xinfo_stream(key)
            clock, *replies = pipe.execute(raise_on_error=False)
        ends, beyond, infos = replies[0::3], replies[1::3], replies[2::3]
        _raise_errors([clock, *ends, *beyond])
        most, seen = self._counted, list(chain(*ends, *beyond))
        share = _size(seen) * len(partitions)
        self._counted = next_piece(most, len(seen), share, _COUNT_AT_MOST)
        return Tail(
            _clock_ms(clock),
            partitions,
            tuple(position_of(end[0][0]) if end else 0 for end in ends),
            tuple(
                None if len(after) == most else _added(info) - len(after)
                for info, after in zip(infos, beyond, strict=True)
            ),
        )

    def positions_at(
        self, time_ms: int, partitions: Sequence[int] = ()
    ) -> dict[int, int]:
        """Return the last position before a time, for each partition: it says so."""
        last = (time_ms << SEQUENCE_BITS) - 1
        return dict.fromkeys(partitions or self._partitions, last)

    def read(self, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
        ranges = {p: span for p, span in ranges.items() if span[0] < span[1]}
        ends = {p: entry_id(upto) for p, (_, upto) in ranges.items()}
        lasts = self._last_ones((self._keys[p], end, end) for p, end in ends.items())
        most = {p: _fitting(last) for p, last in zip(ends, lasts, strict=True)}
        # Of a short range the first pieces are all: they are asked for at once, and are
        # together no more than one.
        most_first = {p: max(1, m // len(ranges)) for p, m in most.items()}
        firsts = self._ask(ranges, most_first)
        for (partition, span), first in zip(ranges.items(), firsts, strict=True):
            raw, asked = first, most_first[partition]
            while raw:
                with no_collection():
                    chunk = self._take_in(partition, raw, span[1], asked)
                yield partition, chunk
                if chunk.upto >= span[1]:
                    break
                asked = most[partition]
                [raw] = self._ask({partition: (chunk.upto, span[1])}, most)

    def _ask(
        self, ranges: Ranges, most: Mapping[int, int]
    ) -> list[Sequence[_RawEntry]]:
        """Return a piece of each range, of so many entries at most."""
        with self._client.pipeline(transaction=False) as pipe:
            for p, (after, upto) in ranges.items():
                span = f"({entry_id(max(after, 0))}", entry_id(upto)
                pipe.xrange(self._keys[p], *span, count=min(most[p], self._pieces[p]))
            pieces: list[Sequence[_RawEntry]] = pipe.execute()
            return pieces

    def _take_in(
        self, partition: int, raw: Sequence[_RawEntry], upto: int, most: int
    ) -> Chunk:
        most = min(most, self._pieces[partition])
        chunk, size = _chunk(raw, upto if len(raw) < most else position_of(raw[-1][0]))
        self._pieces[partition] = next_piece(most, len(raw), size, _CHUNK)
        return chunk

    def _last_ones(
        self, spans: Iterable[tuple[str, str, str]]
    ) -> list[Sequence[_RawEntry]]:
        with self._client.pipeline(transaction=False) as pipe:
            for key, high, low in spans:
                pipe.xrevrange(key, high, low, count=1)
            entries: list[Sequence[_RawEntry]] = pipe.execute()
            return entries

    def head(self) -> Head:
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
        full = {
            self._keys[partition]: min(position + 1, before_ms << SEQUENCE_BITS)
            for partition, position in positions.items()
        }
        while full:
            with self._client.pipeline(transaction=False) as pipe:
                for key, keep_from in full.items():
                    pipe.xtrim(
                        key,
                        minid=entry_id(keep_from),
                        approximate=True,
                        limit=_TRIMMED_AT_ONCE,
                    )
                dropped = pipe.execute()
            # The server drops whole nodes: it may stop a little below the limit.
            full = {
                key: keep_from
                for (key, keep_from), count in zip(full.items(), dropped, strict=True)
                if count > _TRIMMED_AT_ONCE // 2
            }


def _size(raw: Sequence[_RawEntry]) -> int:
    """Return the bytes of entries, whatever fields they have."""
    return sum(map(len, chain.from_iterable(entry[1] or () for entry in raw)))


def _fitting(last: Sequence[_RawEntry]) -> int:
    """Return how many entries like this one are a piece; one that is gone says none."""
    return max(1, PIECE_BYTES // max(_size(last), 1))


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


def _chunk(raw: Sequence[_RawEntry], upto: int) -> tuple[Chunk, int]:
    """Return entries as columns, and their bytes as ``_size`` counts them, or more."""
    ids = pa.array([entry[0] for entry in raw], pa.binary()).cast(pa.string())
    halves = pc.list_flatten(pc.split_pattern(ids, "-")).cast(pa.int64())
    append_ms, numbers = halves[0::2], halves[1::2]
    if pc.max(numbers).as_py() >> SEQUENCE_BITS:
        raise LogUnusable(
            f"stream ids {raw[0][0]!r} to {raw[-1][0]!r}: "
            "more than 2^21 entries in one ms"
        )
    positions = pc.bit_wise_or(pc.shift_left(append_ms, _SHIFT), numbers)
    # Nearly every entry has our field and no other: looked at here, not in a call each.
    payloads = [f[1] for _, f in raw if f and len(f) == 2 and f[0] == FIELD]
    is_usual = len(payloads) == len(raw)
    if not is_usual:
        payloads = [_payload(entry[1]) for entry in raw]
    column = pa.array(payloads, pa.binary())
    size = column.nbytes if is_usual else _size(raw)
    return Chunk(positions, append_ms, column, upto), size


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
