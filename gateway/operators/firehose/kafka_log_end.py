"""Looks at the end of a trade log in a topic of Kafka.

Markers of transactions have positions, too: they count as appended, and are not read.
"""

import asyncio
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from gateway.health.kafka_ends import KAFKA_ANSWER_S
from gateway.operators.firehose.log_piece import (
    LogEntry,
    LogPiece,
    LogUnseen,
    share_out,
)
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.kafka_log_reader import KafkaLogReader

_FUTURE_MS = 86_400_000
"""A boundary so far ahead of the clock is past the end of every partition."""

log = structlog.get_logger()


class KafkaLogEnd:
    """Reads in a thread of its own: brokers may take seconds to answer.

    There is never more than one look under way.
    """

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._reader: KafkaLogReader | None = None
        self._ends: dict[int, int] = {}
        self._under_way: asyncio.Future[LogPiece] | None = None
        self._is_beginning = True

    def begin(self) -> None:
        """Forget the look before."""
        self._is_beginning = True

    async def look(self, most: int) -> LogPiece:
        """Return what came since the look before, ``most`` entries of it at most.

        At least one of each partition that grew. Raises LogUnseen.
        """
        if self._under_way is None:
            loop = asyncio.get_running_loop()
            self._under_way = loop.create_future()
            # A daemon: brokers that are away must not hold up a planned stop.
            threading.Thread(
                target=self._answer,
                args=(loop, self._under_way, most),
                name="firehose",
                daemon=True,
            ).start()
        try:
            async with asyncio.timeout(KAFKA_ANSWER_S):
                piece = await asyncio.shield(self._under_way)
        except TimeoutError:
            raise LogUnseen(
                f"no Kafka broker at {self._topic.servers} answered within "
                f"{KAFKA_ANSWER_S:g} s"
            ) from None
        except LogUnseen:
            self._under_way = None
            raise
        self._under_way = None
        return piece

    def _answer(
        self,
        loop: asyncio.AbstractEventLoop,
        asked: "asyncio.Future[LogPiece]",
        most: int,
    ) -> None:
        piece, problem = LogPiece(), None
        try:
            piece = self._look(most)
        except (LogAway, LogUnusable) as error:
            # A topic that was made again has another reader.
            self._reader, self._is_beginning = None, True
            problem = str(error)
        except Exception:
            log.exception("the end of the log could not be read")
            self._reader, self._is_beginning = None, True
            problem = f"{self._topic}: a fault of the gateway, see the log"
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_settle, asked, piece, problem)

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


def _settle(
    asked: "asyncio.Future[LogPiece]", piece: LogPiece, problem: str | None
) -> None:
    if asked.done():
        return
    if problem is None:
        asked.set_result(piece)
    else:
        asked.set_exception(LogUnseen(problem))
        # Nobody may wait for it any more.
        asked.exception()
