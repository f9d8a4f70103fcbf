"""The appending side of a trade log that is a topic of Kafka, for our own feeds."""

from typing import Any

import structlog

from tickthrottle_client.topic_writer import TopicWriter

log = structlog.get_logger()


class KafkaLogWriter(TopicWriter):
    """Appends to a topic as the client does, and logs as a process of ours does."""

    def warn(self, event: str, **fields: Any) -> None:
        """Log a warning."""
        log.warning(event, **fields)
