"""What the trade log still holds of the past, whichever kind of log it is.

Nothing is written and nothing kept. Entries are read in pieces, so memory is bounded
by what the caller keeps.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import redis

from ingest.log import Chunk, LogInfo, Ranges
from ingest.redis_log import find_log
from throttle.rebuild import Entry
from throttle.settings import ThrottleSettings
from throttle.stock import Stock


class LogPast(Protocol):
    """The past of one log.

    Methods raise LogAway and LogUnusable, or redis.RedisError.
    """

    info: LogInfo

    def trades(
        self,
        partitions: Sequence[int],
        after: Mapping[int, int],
        newest_first: bool = False,
    ) -> Iterator[Entry]:
        """Yield the entries beyond a position per partition, by append time."""

    def between(self, ranges: Ranges) -> Iterator[Entry]:
        """Yield the entries of some ranges that are left, each range's in order."""

    def fronts(self, partitions: Iterable[int]) -> dict[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""

    def positions_before(
        self, time_ms: int, partitions: Iterable[int]
    ) -> dict[int, int]:
        """Return positions at or before which nothing was appended at a time or later.

        What is beyond them was appended at the time or later.
        """

    def append_ms(self, partition: int, position: int) -> int | None:
        """Return when an entry was appended, None if that is no longer known."""

    def stock(self, marks: Mapping[int, Collection[int]]) -> dict[int, Stock]:
        """Count what some partitions hold from their first mark, or all, to the end."""


def open_past(client: redis.Redis, settings: ThrottleSettings) -> LogPast | None:
    """Return the past of the log that the settings name, None if there is no log yet.

    Nothing is created. Raises LogAway and LogUnusable, or redis.RedisError.
    """
    topic = settings.topic()
    if topic is None:
        from throttle.redis_past import RedisLogPast

        found = find_log(client, settings.namespace)
        if found is None:
            return None
        return RedisLogPast(client, settings.namespace, found)
    # Loaded where it is needed only.
    from ingest.kafka import open_topic
    from throttle.kafka_past import KafkaLogPast

    return KafkaLogPast(topic, open_topic(topic))


def entries_of(partition: int, chunk: Chunk) -> Iterator[Entry]:
    """Yield the entries of a chunk."""
    columns = (chunk.positions, chunk.append_ms, chunk.payloads)
    for values in zip(*(column.to_pylist() for column in columns), strict=True):
        yield Entry(partition, *values)
