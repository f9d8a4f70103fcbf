"""The trade log's entries as far as they are left, whichever kind of log it is.

Nothing is written and nothing kept. Entries are read in pieces, so memory is bounded
by what the caller keeps.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import redis

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogInfo, Ranges
from ingest.tradelog.redis_log_reader import find_log
from throttle.audit.recompute import Entry
from throttle.audit.reconcile import EntryCount


class LogEntries(Protocol):
    """The entries of one log.

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

    def count(self, marks: Mapping[int, Collection[int]]) -> dict[int, EntryCount]:
        """Count what some partitions hold from their first mark, or all, to the end."""


def open_log_entries(
    client: redis.Redis, namespace: str, topic: KafkaTopic | None = None
) -> LogEntries | None:
    """Return the entries of a log in a topic, else in Redis; None if there is no log.

    Nothing is created. Raises LogAway and LogUnusable, or redis.RedisError.
    """
    if topic is None:
        from throttle.audit.redis_entries import RedisLogEntries

        info = find_log(client, namespace)
        return None if info is None else RedisLogEntries(client, namespace, info)
    # Loaded where it is needed only.
    from throttle.audit.kafka_entries import KafkaLogEntries
    from tickthrottle_client.kafka_client import open_topic

    return KafkaLogEntries(topic, open_topic(topic))
