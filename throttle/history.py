"""Reads what Redis still holds of the past: windows, batches, books, trades.

Nothing is written and nothing kept. Streams are read in pieces, so memory is bounded
by what the caller keeps. Methods raise redis.RedisError, and ValueError for what the
throttle would not have written.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import merge
from typing import Any, TypeVar

import redis

from ingest.log import LogInfo
from ingest.redis_log import (
    FIELD,
    RedisLogReader,
    append_time_ms,
    entry_id,
    position_of,
    stream_key,
)
from throttle.batch import DeadLetter
from throttle.compare import Published
from throttle.cut import between
from throttle.ledger import BatchEntry, Ledger
from throttle.rebuild import Entry
from throttle.snapshot import Keys, LastValue, WindowSnapshot

T = TypeVar("T", Entry, DeadLetter)

_PIECE = 1_000
# Windows are big, some hundred kilobytes each.
_WINDOWS_PIECE = 20

_Fields = Mapping[bytes, bytes]


class History:
    """The past of one namespace."""

    def __init__(self, client: redis.Redis, namespace: str) -> None:
        self._client = client
        self.namespace = namespace
        self._keys = Keys(namespace)

    def log_info(self) -> LogInfo | None:
        """Return the trade log's identity, None if there is no log yet."""
        fields: Any = self._client.hgetall(f"{self.namespace}:log")
        if not fields:
            return None
        return LogInfo(
            fields[b"id"].decode(),
            int(fields[b"partitions"]),
            int(fields[b"created_ms"]),
        )

    def window_ms(self) -> int | None:
        """Return the length of the published windows, None if there are none yet."""
        value: Any = self._client.hget(self._keys.meta, "window_ms")
        return None if value is None else int(value)

    def jobs(self) -> dict[str, str]:
        """Return the jobs that ever published to the stream, each with its log's id."""
        fields: Any = self._client.hgetall(self._keys.meta)
        return {
            name.decode().removeprefix("log:"): value.decode()
            for name, value in sorted(fields.items())
            if name.startswith(b"log:")
        }

    def ledger(self, job: str) -> Ledger | None:
        """Return a job's books, None if it has none yet."""
        stored: Any = self._client.hgetall(self._keys.ledger(job))
        return Ledger.decode(job, stored)

    def batches(self, job: str, limit: int | None = None) -> list[BatchEntry]:
        """Return a job's recorded batches, or the newest ``limit``; oldest first."""
        entries: Any = self._client.xrevrange(self._keys.batches(job), count=limit)
        return [BatchEntry.decode(*entry) for entry in reversed(entries)]

    def windows(
        self,
        first_ms: int | None = None,
        last_ms: int | None = None,
        isin: str | None = None,
        newest_first: bool = False,
    ) -> Iterator[WindowSnapshot]:
        """Yield the windows that end in a range, both ends included.

        With ``isin`` only those in which the issue changed, with its row alone.
        """
        key = self._keys.windows
        for _, fields in self._scan(key, newest_first, piece=_WINDOWS_PIECE):
            window = WindowSnapshot.decode(fields.get(b"snapshot", b""))
            rows = tuple(r for r in window.rows if isin in (None, r.isin))
            is_late = last_ms is not None and window.window > last_ms
            is_early = first_ms is not None and window.window < first_ms
            if not is_early and not is_late and (isin is None or rows):
                yield replace(window, rows=rows)

    def published_before(self) -> Published:
        """Return what was published before the oldest window of the window log.

        To be asked before the windows are read. The last-value table tells it of an
        issue that has not changed since; of one that has, nobody knows.
        """
        table: Any = self._client.hgetall(self._keys.last)
        first = _oldest_offset(self._client, self._keys.windows)
        if first is None or first == 1:
            return Published({}, ())
        values = [LastValue.decode(*field) for field in table.items()]
        return Published(
            {value.isin: value.version for value in values if value.offset < first},
            [value.isin for value in values if value.offset >= first],
        )

    def remains(self, info: LogInfo) -> "RedisRemains":
        """Return what is left to check the published windows with."""
        return RedisRemains(self._client, self.namespace, info)

    def trades(
        self,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[Entry]:
        """Yield the log's entries beyond a position per partition, by append time."""
        keys = {p: stream_key(self.namespace, p) for p in partitions}
        return self._merged(keys, after, newest_first, _entry)

    def dead_letters(
        self,
        job: str,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[DeadLetter]:
        """Yield a job's refused trades beyond some positions, by append time."""
        keys = {p: f"{self._keys.dead(job)}:{p}" for p in partitions}
        return self._merged(keys, after, newest_first, _letter)

    def _merged(
        self,
        keys: Mapping[int, str],
        after: Mapping[int, int],
        newest_first: bool,
        decode: Callable[[int, int, _Fields], T],
    ) -> Iterator[T]:
        # A position begins with the append time: its order is the order of time.
        def one(partition: int) -> Iterator[T]:
            low = f"({entry_id(after[partition])}" if partition in after else "-"
            for found, fields in self._scan(keys[partition], newest_first, low):
                yield decode(partition, position_of(found), fields)

        def by_time(entry: T) -> tuple[int, int]:
            return entry.position, entry.partition

        return merge(*(one(p) for p in keys), key=by_time, reverse=newest_first)

    def _scan(
        self, key: str, newest_first: bool, low: str = "-", piece: int = _PIECE
    ) -> Iterator[tuple[bytes, _Fields]]:
        high = "+"
        while True:
            if newest_first:
                entries: Any = self._client.xrevrange(key, high, low, count=piece)
            else:
                entries = self._client.xrange(key, low, high, count=piece)
            yield from entries
            if len(entries) < piece:
                return
            edge = f"({entries[-1][0].decode()}"
            low, high = (low, edge) if newest_first else (edge, high)


class RedisRemains:
    """What Redis still holds of the past; for ``recheck.py``."""

    def __init__(self, client: redis.Redis, namespace: str, info: LogInfo) -> None:
        self._client = client
        self._reader = RedisLogReader(client, namespace, info)
        self._keys = [stream_key(namespace, p) for p in range(info.partitions)]
        self._windows = Keys(namespace).windows

    def entries(self, batch: BatchEntry) -> Iterator[Entry]:
        """Yield the entries between a batch's two cuts, as far as they are left."""
        ranges = between(batch.start, batch.end, batch.end.partitions)
        for partition, chunk in self._reader.read(ranges):
            columns = (chunk.positions, chunk.append_ms, chunk.payloads)
            for values in zip(*(c.to_pylist() for c in columns), strict=True):
                yield Entry(partition, *values)

    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""
        fronts: dict[int, Entry | None] = {}
        for p in partitions:
            first: Any = self._client.xrange(self._keys[p], count=1)
            found = (position_of(first[0][0]), first[0][1]) if first else None
            fronts[p] = _entry(p, *found) if found else None
        return fronts

    def oldest_offset(self) -> int | None:
        """Return the offset of the oldest window left, None if there is none."""
        return _oldest_offset(self._client, self._windows)


def _oldest_offset(client: redis.Redis, windows: str) -> int | None:
    oldest: Any = client.xrange(windows, count=1)
    return int(oldest[0][0].partition(b"-")[0]) if oldest else None


def _entry(partition: int, position: int, fields: _Fields) -> Entry:
    payload = fields.get(FIELD, b"")
    return Entry(partition, position, append_time_ms(position), payload)


def _letter(partition: int, position: int, fields: _Fields) -> DeadLetter:
    reason, error = (fields.get(name, b"").decode() for name in (b"reason", b"error"))
    append_ms = append_time_ms(position)
    return DeadLetter(
        partition, position, append_ms, reason, error, fields.get(b"trade", b"")
    )
