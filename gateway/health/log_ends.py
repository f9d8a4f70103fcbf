"""Where the trade log ends, in Redis or in Kafka. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.tradelog.contract import LogInfo, LogKind
from tickthrottle_client.log_v1 import append_time_ms, position_of

KAFKA_PREFIX = "kafka:"
"""What the id of a log in Kafka begins with."""


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of one partition.

    ``position`` is that of its last entry, None if it never had one. In Redis, where
    positions are not dense, ``added`` is how many entries it ever had, and ``left``
    how many it still has, from the position ``first`` on. In Kafka, ``waiting``
    offsets stand behind an open transaction since ``waits_since_ms``, and
    ``stamp_off_ms`` is how far a stamp is off that cannot be the time of an append.
    """

    position: int | None
    append_ms: int | None
    added: int | None = None
    left: int | None = None
    first: int | None = None
    waiting: int = 0
    waits_since_ms: int | None = None
    stamp_off_ms: int = 0


@dataclass(frozen=True, slots=True)
class LogEnds:
    """The ends of all partitions, or a sentence on why they are not known."""

    kind: LogKind
    log_id: str | None = None
    partitions: Mapping[int, PartitionEnd] | None = None
    problem: str | None = None

    @property
    def last_append_ms(self) -> int | None:
        """When anything was appended last, as far as that is known."""
        times = (end.append_ms for end in (self.partitions or {}).values())
        return max((ms for ms in times if ms is not None), default=None)

    def of(self, partition: int) -> PartitionEnd | None:
        """Return the end of a partition, None if it is not known."""
        return (self.partitions or {}).get(partition)


def log_kind(log_id: str) -> LogKind:
    """Return what the log with this id is kept in."""
    return "kafka" if log_id.startswith(KAFKA_PREFIX) else "redis"


def decode_redis_ends(info: LogInfo, replies: Sequence[Any]) -> LogEnds:
    """Decode the answers to XINFO STREAM, one per partition.

    Raises what was answered in place of them; a stream that is not there is empty.
    """
    ends = {}
    for partition, reply in enumerate(replies):
        if isinstance(reply, Exception):
            if "no such key" not in str(reply):
                raise reply
            ends[partition] = PartitionEnd(None, None, 0, 0)
        else:
            ends[partition] = _decode_redis_end(reply)
    return LogEnds("redis", info.log_id, ends)


def _decode_redis_end(reply: Mapping[str, Any]) -> PartitionEnd:
    added, left = int(reply["entries-added"]), int(reply["length"])
    if not added:
        return PartitionEnd(None, None, 0, 0)
    last = position_of(reply["last-generated-id"])
    first = position_of(reply["first-entry"][0]) if left else None
    return PartitionEnd(last, append_time_ms(last), added, left, first)
