"""Looks at the end of a trade log in a topic of Kafka.

Markers of transactions have positions, too: they count as appended, and are not read.
"""

import time
from functools import partial
from typing import TYPE_CHECKING

import structlog

from gateway.health.kafka_ends import KAFKA_ANSWER_S, no_broker
from gateway.operators.firehose.log_piece import (
    LogEntry,
    LogPiece,
    LogUnseen,
    share_out,
)
from gateway.upstream.asked_in_thread import AskedInThread
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.kafka_log_reader import KafkaLogReader

_FUTURE_MS = 86_400_000
"""A boundary so far ahead of the clock is past the end of every partition."""

log = structlog.get_logger()


class KafkaLogEnd:
    """Reads in a thread of its own: brokers may take seconds to answer."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._reader: KafkaLogReader | None = None
        self._ends: dict[int, int] = {}
        # What a late look has found is counted by no other.
        self._brokers = AskedInThread[LogPiece | LogUnseen]("firehose", keeps_late=True)
        self._is_beginning = True

    def begin(self) -> None:
        """Forget the look before."""
        self._is_beginning = True

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before, ``most`` entries of it at most.

        At least one of each partition that grew. Raises LogUnseen.
        """
        try:
            found = await self._brokers.ask(partial(self._answer, most), KAFKA_ANSWER_S)
        except TimeoutError:
            raise LogUnseen(no_broker(self._topic, KAFKA_ANSWER_S)) from None
        if isinstance(found, LogUnseen):
            raise found
        return found

    def _answer(self, most: int) -> LogPiece | LogUnseen:
        try:
            return self._look(most)
        except (LogAway, LogUnusable) as error:
            problem = str(error)
        except Exception:
            log.exception("the end of the log could not be read")
            problem = f"{self._topic}: a fault of the gateway, see the log"
        # A topic that was made again has another reader.
        self._reader, self._is_beginning = None, True
        return LogUnseen(problem)

    def _look(self, most: int) -> LogPiece:
        from ingest.kafka.kafka_log_reader import KafkaLogReader
        from tickthrottle_client.kafka_client import open_topic

        if self._reader is None:
            self._reader = KafkaLogReader(self._topic, open_topic(self._topic))
        tail = self._reader.tail(time.time_ns() // 1_000_000 + _FUTURE_MS)
        ends = dict(zip(tail.partitions, tail.positions, strict=True))
        before, self._ends = self._ends, ends
        if self._is_beginning:
            self._is_beginning = False
            return LogPiece()
        # A partition that was added since then was empty.
        appended = {p: end - before.get(p, -1) for p, end in ends.items()}
        shares = share_out(appended, most)
        ranges = {p: (ends[p] - count, ends[p]) for p, count in shares.items()}
        entries = [
            LogEntry(append_ms, payload)
            for _, chunk in self._reader.read(ranges)
            for append_ms, payload in zip(
                chunk.append_ms.to_pylist(), chunk.payloads.to_pylist(), strict=True
            )
        ]
        entries.sort(key=lambda entry: entry.append_ms)
        return LogPiece(max(0, sum(appended.values())), entries)
