"""What is appended to a topic of Kafka, every entry once, while somebody follows it."""

import time
from collections.abc import Set
from typing import TYPE_CHECKING

import structlog

from gateway.upstream.asked_in_thread import AskedInThread
from gateway.upstream.trade_tail import MOST_ENTRIES, LogUnread, TailPiece
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.kafka_log_reader import KafkaLogReader

ANSWER_S = 5.0
"""How long brokers may take to answer a look."""

_FUTURE_MS = 86_400_000

log = structlog.get_logger()


class KafkaTradeTail:
    """Reads in a thread of its own; an instrument may be in any partition."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._reader: KafkaLogReader | None = None
        self._upto: dict[int, int] | None = None
        # What a late look has read is read once.
        self._brokers = AskedInThread[TailPiece | LogUnread]("trades", keeps_late=True)

    def begin(self) -> None:
        """Forget how far it was read."""
        self._upto = None

    async def read(self, isins: Set[str]) -> TailPiece:
        """Return what came since the last time. Raises LogUnread."""
        try:
            found = await self._brokers.ask(self._answer, ANSWER_S)
        except TimeoutError:
            silence = f"no broker answers within {ANSWER_S:g} s"
            raise LogUnread(f"{self._topic}: {silence}") from None
        if isinstance(found, LogUnread):
            raise found
        return found

    def _answer(self) -> TailPiece | LogUnread:
        try:
            return self._read()
        except (LogAway, LogUnusable) as error:
            problem = str(error)
        except Exception:
            log.exception("trades of the log could not be read")
            problem = f"{self._topic}: a fault of the gateway, see the log"
        # A topic that was made again has another reader.
        self._reader, self._upto = None, None
        return LogUnread(problem)

    def _read(self) -> TailPiece:
        from ingest.kafka.kafka_log_reader import KafkaLogReader
        from tickthrottle_client.kafka_client import open_topic

        if self._reader is None:
            self._reader = KafkaLogReader(self._topic, open_topic(self._topic))
        tail = self._reader.tail(time.time_ns() // 1_000_000 + _FUTURE_MS)
        ends = dict(zip(tail.partitions, tail.positions, strict=True))
        upto = self._upto
        if upto is None:
            self._upto = ends
            return TailPiece([])
        # A partition that was added since then was empty.
        spans = {p: (upto.get(p, -1), end) for p, end in ends.items()}
        reading = {p: (a, min(end, a + MOST_ENTRIES)) for p, (a, end) in spans.items()}
        entries: list[tuple[int, bytes]] = []
        for _, chunk in self._reader.read(reading):
            columns = chunk.append_ms.to_pylist(), chunk.payloads.to_pylist()
            entries += zip(*columns, strict=True)
        entries.sort(key=lambda entry: entry[0])
        self._upto = {p: end for p, (_, end) in reading.items()}
        is_full = any(reading[p][1] < end for p, (_, end) in spans.items())
        return TailPiece(entries, is_full)
