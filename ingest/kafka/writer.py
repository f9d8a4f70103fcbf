"""The appending side of a trade log that is a topic of Kafka, for our own feeds."""

from typing import Any

import structlog

from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import LogInfo
from tickthrottle_client.topic_writer import TOO_LARGE, TopicWriter

__all__ = ["TOO_LARGE", "KafkaLogWriter", "open_writer"]

log = structlog.get_logger()


class KafkaLogWriter(TopicWriter):
    """Appends to a topic as the client does, and logs as a process of ours does."""

    def warn(self, event: str, **fields: Any) -> None:
        """Log a warning."""
        log.warning(event, **fields)


def open_writer(topic: KafkaTopic) -> tuple[LogInfo, KafkaLogWriter]:
    """Return a topic's identity and what appends to it.

    Raises LogAway, and LogUnusable for a topic that is not there or not ours to use.
    """
    writer = KafkaLogWriter.open(topic)
    return writer.info, writer
