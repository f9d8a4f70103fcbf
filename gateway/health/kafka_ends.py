"""Asks the brokers of Kafka where the trade log ends.

A log that cannot be asked is a sentence to show, never an error.
"""

import asyncio
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from gateway.health.log_ends import LogEnds, PartitionEnd
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.ends import KafkaEnds

KAFKA_ANSWER_S = 1.0
"""Brokers that have not answered in this time are shown as away."""

log = structlog.get_logger()


class KafkaEndsReader:
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
            ends = self._unknown(f"{self._topic}: a fault of the gateway, see the log")
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(_set_result, asked, ends)

    def _look(self) -> LogEnds:
        from ingest.kafka.ends import KafkaEnds

        if self._ends is None:
            self._ends = KafkaEnds(self._topic)
        log_id, ends = self._ends.look()
        partitions = {
            p: PartitionEnd(end.position, end.append_ms) for p, end in ends.items()
        }
        return LogEnds("kafka", log_id, partitions)

    def _unknown(self, problem: str) -> LogEnds:
        return LogEnds("kafka", problem=problem)


def _set_result(asked: "asyncio.Future[LogEnds]", ends: LogEnds) -> None:
    if not asked.done():
        asked.set_result(ends)
