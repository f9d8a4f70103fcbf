"""What a trade log on Redis Streams still holds of the past."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

import redis

from ingest.tradelog.contract import LogInfo, LogUnusable, Ranges
from ingest.tradelog.redis_log_reader import Fields, RedisLogReader, scan_stream
from throttle.audit.recompute import Entry, entries_of
from throttle.audit.reconcile import EntryCount, EntryCounter
from throttle.contract.cut import NOWHERE
from tickthrottle_client.log_v1 import (
    FIELD,
    append_time_ms,
    entry_id,
    position_of,
    stream_key,
)

_LOOKS = 10


class RedisLogEntries:
    """The entries of a log on Redis Streams. A position carries its append time."""

    def __init__(self, client: redis.Redis, namespace: str, info: LogInfo) -> None:
        self.info = info
        self._client = client
        self._namespace = namespace
        self._reader = RedisLogReader(client, namespace, info)

    def trades(
        self,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[Entry]:
        """Yield the entries beyond a position per partition, by append time."""

        def entries_in(partition: int) -> Iterator[Entry]:
            first = after.get(partition, NOWHERE)
            low = "-" if first < 0 else f"({entry_id(first)}"
            key = stream_key(self._namespace, partition)
            for stream_id, fields in scan_stream(self._client, key, newest_first, low):
                yield _entry(partition, position_of(stream_id), fields)

        def by_time(entry: Entry) -> tuple[int, int]:
            return entry.position, entry.partition

        return merge(*map(entries_in, partitions), key=by_time, reverse=newest_first)

    def between(self, ranges: Ranges) -> Iterator[Entry]:
        """Yield the entries of some ranges that are left, each range's in order."""
        for partition, chunk in self._reader.read(ranges):
            yield from entries_of(partition, chunk)

    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""
        return {p: next(self.trades([p], {}), None) for p in partitions}

    def positions_before(
        self, time_ms: int, partitions: Iterable[int]
    ) -> dict[int, int]:
        """Return the last position that anything before a time can have."""
        return dict.fromkeys(partitions, position_of(b"%d-0" % time_ms) - 1)

    def append_ms(self, partition: int, position: int) -> int | None:
        """Return when an entry was appended, whether it is left or not."""
        return append_time_ms(position)

    def count(self, marks: Mapping[int, Collection[int]]) -> dict[int, EntryCount]:
        """Count what some partitions hold from their first mark, or all, to the end.

        Raises LogUnusable for a partition that is trimmed faster than it is read.
        """
        return {
            partition: self._count(partition, of) for partition, of in marks.items()
        }

    def _count(self, partition: int, marks: Collection[int]) -> EntryCount:
        after = min(marks, default=NOWHERE)
        for _ in range(_LOOKS):
            length, gone, front, end = self._look(partition)
            counter = EntryCounter(marks)
            for _, chunk in self._reader.read({partition: (after, end)}):
                counter.add(chunk.positions.to_pylist())
            # Trimmed while it was read: what was counted is of no one moment.
            if after >= front or counter.entries == length:
                return counter.take(gone, front - 1 if gone else NOWHERE, False)
        raise LogUnusable(
            f"{stream_key(self._namespace, partition)}: loses entries faster than they "
            "can be counted"
        )

    def _look(self, partition: int) -> tuple[int, int, int, int]:
        """Return how many are left, how many gone, and the ends of what is left."""
        try:
            info: Any = self._client.xinfo_stream(
                stream_key(self._namespace, partition)
            )
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return 0, 0, 0, NOWHERE
        length, added = int(info["length"]), int(info["entries-added"])
        last = position_of(info["last-generated-id"])
        front = position_of(info["first-entry"][0]) if length else last + 1
        return length, added - length, front, last


def _entry(partition: int, position: int, fields: Fields) -> Entry:
    payload = fields.get(FIELD, b"")
    return Entry(partition, position, append_time_ms(position), payload)
