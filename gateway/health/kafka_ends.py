"""Asks the brokers of Kafka where the trade log ends.

A log that cannot be asked is a sentence to show, never an error.
"""

from typing import TYPE_CHECKING

import structlog

from gateway.health.log_ends import LogEnds, PartitionEnd
from gateway.upstream.shared_answer import AskedInThread
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogAway, LogUnusable

if TYPE_CHECKING:
    # Loaded where it is needed only.
    from ingest.kafka.ends import KafkaEnds

KAFKA_ANSWER_S = 1.0
"""Brokers that have not answered in this time are shown as away."""

log = structlog.get_logger()


class KafkaEndsReader:
    """Asks brokers in a thread of its own: a question may take seconds."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._ends: KafkaEnds | None = None
        self._brokers = AskedInThread[LogEnds]("log ends")

    async def ends(self) -> LogEnds:
        """Return where the topic ends, within ``KAFKA_ANSWER_S``."""
        try:
            return await self._brokers.ask(self._answer, KAFKA_ANSWER_S)
        except TimeoutError:
            return LogEnds("kafka", problem=no_broker(self._topic, KAFKA_ANSWER_S))

    def _answer(self) -> LogEnds:
        try:
            return self._look()
        except (LogAway, LogUnusable) as error:
            problem = str(error)
        except Exception:
            log.exception("the ends of the log could not be asked for")
            problem = f"{self._topic}: a fault of the gateway, see the log"
        return LogEnds("kafka", problem=problem)

    def _look(self) -> LogEnds:
        from ingest.kafka.ends import KafkaEnds

        if self._ends is None:
            self._ends = KafkaEnds(self._topic)
        log_id, ends = self._ends.look()
        partitions = {
            p: PartitionEnd(
                end.position,
                end.append_ms,
                waiting=end.waiting,
                waits_since_ms=end.waits_since_ms,
                stamp_off_ms=end.stamp_off_ms,
            )
            for p, end in ends.items()
        }
        return LogEnds("kafka", log_id, partitions)


def no_broker(topic: KafkaTopic, within_s: float) -> str:
    """Say that the brokers of a topic have not answered in time."""
    return f"no Kafka broker at {topic.servers} answered within {within_s:g} s"
