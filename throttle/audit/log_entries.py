"""The trade log's entries as far as they are left, whichever kind of log it is.

Nothing is written and nothing kept. Entries are read in pieces, so memory is bounded
by what the caller keeps.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from typing import Any

import redis

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogInfo, LogReader, LogUnusable, Ranges
from ingest.tradelog.redis_log_reader import RedisLogReader, find_log, scan_stream
from throttle.audit.recompute import Entry, entries_of
from throttle.audit.reconcile import EntryCount
from throttle.contract.cut import NOWHERE
from tickthrottle_client.log_v1 import (
    FIELD,
    append_time_ms,
    entry_id,
    position_of,
    stream_key,
)

_LOOKS = 10


class LogEntries(ABC):
    """The entries of one log.

    Methods raise LogAway and LogUnusable, or redis.RedisError.
    """

    def __init__(self, info: LogInfo, reader: LogReader) -> None:
        self.info = info
        self._reader = reader

    def trades(
        self,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[Entry]:
        """Yield the entries beyond a position per partition, by append time.

        In a topic that lets its producers stamp, by append time as far as each
        partition's own order allows.
        """

        def by_time(entry: Entry) -> tuple[int, int, int]:
            return entry.append_ms, entry.position, entry.partition

        begins = {p: after.get(p, NOWHERE) for p in partitions}
        entries = self._beyond(begins, newest_first)
        return merge(*entries, key=by_time, reverse=newest_first)

    def between(self, ranges: Ranges) -> Iterator[Entry]:
        """Yield the entries of some ranges that are left, each range's in order."""
        for partition, chunk in self._reader.read(ranges):
            yield from entries_of(partition, chunk)

    @abstractmethod
    def _beyond(
        self, begins: Mapping[int, int], newest_first: bool
    ) -> Iterable[Iterator[Entry]]:
        """Return the entries of each partition beyond a position, in their order."""

    @abstractmethod
    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""

    @abstractmethod
    def positions_before(
        self, time_ms: int, partitions: Iterable[int]
    ) -> dict[int, int]:
        """Return positions at or before which nothing was appended at a time or later.

        What is beyond them was appended at the time or later.
        """

    @abstractmethod
    def append_ms(self, partition: int, position: int) -> int | None:
        """Return when an entry was appended, None if that is no longer known."""

    @abstractmethod
    def count(self, marks: Mapping[int, Collection[int]]) -> dict[int, EntryCount]:
        """Count what some partitions hold from their first mark, or all, to the end.

        Raises LogUnusable for a partition that is trimmed faster than it is read.
        """


class RedisLogEntries(LogEntries):
    """The entries of a log on Redis Streams. A position carries its append time."""

    def __init__(self, client: redis.Redis, namespace: str, info: LogInfo) -> None:
        super().__init__(info, RedisLogReader(client, namespace, info))
        self._client = client
        self._namespace = namespace

    def _beyond(
        self, begins: Mapping[int, int], newest_first: bool
    ) -> Iterable[Iterator[Entry]]:
        def entries_in(partition: int) -> Iterator[Entry]:
            first = begins[partition]
            low = "-" if first < 0 else f"({entry_id(first)}"
            key = stream_key(self._namespace, partition)
            for stream_id, fields in scan_stream(self._client, key, newest_first, low):
                position, payload = position_of(stream_id), fields.get(FIELD, b"")
                yield Entry(partition, position, append_time_ms(position), payload)

        return map(entries_in, begins)

    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
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
        return {p: self._count(p, positions) for p, positions in marks.items()}

    def _count(self, partition: int, marks: Collection[int]) -> EntryCount:
        after = min(marks, default=NOWHERE)
        for _ in range(_LOOKS):
            length, gone, front, end = self._look(partition)
            gone_upto = front - 1 if gone else NOWHERE
            count = EntryCount.begin(marks, gone, gone_upto, is_dense=False)
            for _, chunk in self._reader.read({partition: (after, end)}):
                count.add(chunk.positions.to_pylist())
            # Trimmed while it was read: what was counted is of no one moment.
            if after >= front or count.entries == length:
                return count
        raise LogUnusable(
            f"{stream_key(self._namespace, partition)}: loses entries faster than they "
            "can be counted"
        )

    def _look(self, partition: int) -> tuple[int, int, int, int]:
        """Return how many are left, how many gone, and the ends of what is left."""
        key = stream_key(self._namespace, partition)
        try:
            info: Any = self._client.xinfo_stream(key)
        except redis.ResponseError as error:
            if "no such key" not in str(error):
                raise
            return 0, 0, 0, NOWHERE
        length, added = int(info["length"]), int(info["entries-added"])
        last = position_of(info["last-generated-id"])
        front = position_of(info["first-entry"][0]) if length else last + 1
        return length, added - length, front, last


def open_log_entries(
    client: redis.Redis, namespace: str, topic: KafkaTopic | None = None
) -> LogEntries | None:
    """Return the entries of a log in a topic, else in Redis; None if there is no log.

    Nothing is created. Raises LogAway and LogUnusable, or redis.RedisError.
    """
    if topic is None:
        info = find_log(client, namespace)
        return None if info is None else RedisLogEntries(client, namespace, info)
    # Loaded where it is needed only.
    from throttle.audit.kafka_entries import KafkaLogEntries
    from tickthrottle_client.kafka_client import open_topic

    return KafkaLogEntries(topic, open_topic(topic))
