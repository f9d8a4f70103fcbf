"""Where the trade log ends, asked of whatever it is kept in.

A log that cannot be asked is a sentence to show, never an error.
"""

import asyncio
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import structlog
from redis.exceptions import ResponseError

from ingest.kafka_address import KafkaTopic
from ingest.log import LogAway, LogInfo, LogKind, LogUnusable
from ingest.redis_keys import append_time_ms, position_of

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka_ends import KafkaEnds

KAFKA_ANSWER_S = 1.0
"""Brokers that have not answered in this time are shown as away."""

KAFKA_PREFIX = "kafka:"
"""What the id of a log in Kafka begins with."""


log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class PartitionEnd:
    """The end of one partition.

    ``position`` is that of its last entry, None if it never had one. In Redis, where
    positions are not dense, ``added`` is how many entries it ever had, and ``left``
    how many it still has, from the position ``first`` on.
    """

    position: int | None
    append_ms: int | None
    added: int | None = None
    left: int | None = None
    first: int | None = None


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
        if isinstance(reply, ResponseError) and "no such key" in str(reply):
            ends[partition] = PartitionEnd(None, None, 0, 0)
        elif isinstance(reply, Exception):
            raise reply
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


class KafkaLog:
    """Asks brokers in a thread of its own: a question may take seconds.

    There is never more than one question under way.
    """

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._ends: KafkaEnds | None = None
        self._asked: asyncio.Future[LogEnds] | None = None

    async def ends(self) -> LogEnds:
        """Return where the topic ends, within ``KAFKA_ANSWER_S``."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
            arguments = asyncio.get_running_loop(), self._asked
            # A daemon: brokers that are away must not hold up a planned stop.
            threading.Thread(
                target=self._answer, args=arguments, name="log ends", daemon=True
            ).start()
        try:
            async with asyncio.timeout(KAFKA_ANSWER_S):
                return await asyncio.shield(self._asked)
        except TimeoutError:
            return self._unknown(
                f"no Kafka broker at {self._topic.servers} answered within "
                f"{KAFKA_ANSWER_S:g} s"
            )

    def _answer(
        self, loop: asyncio.AbstractEventLoop, asked: "asyncio.Future[LogEnds]"
    ) -> None:
        try:
            ends = self._look()
        except (LogAway, LogUnusable) as error:
            ends = self._unknown(str(error))
        except Exception:
            log.exception("the ends of the log could not be asked for")
            ends = self._unknown(f"{self._topic}: a fault of ours, see the log")
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_result, asked, ends)

    def _look(self) -> LogEnds:
        from ingest.kafka_ends import KafkaEnds

        if self._ends is None:
            self._ends = KafkaEnds(self._topic)
        log_id, found = self._ends.look()
        partitions = {
            p: PartitionEnd(end.position, end.append_ms) for p, end in found.items()
        }
        return LogEnds("kafka", log_id, partitions)

    def _unknown(self, problem: str) -> LogEnds:
        return LogEnds("kafka", problem=problem)


def _set_result(asked: "asyncio.Future[LogEnds]", ends: LogEnds) -> None:
    if not asked.done():
        asked.set_result(ends)
