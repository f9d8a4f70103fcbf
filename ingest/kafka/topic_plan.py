"""What a topic that we make is to be like. Pure."""

from pydantic import BaseModel, ConfigDict, Field

MAX_MESSAGE_BYTES = 65_536
"""``max.message.bytes`` of a topic we make: four times the largest trade.

What is larger is refused before replicas store it, and readers need memory for it.
"""


class TopicPlan(BaseModel):
    """What a topic that does not exist yet is to be like."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    replication: int = Field(1, ge=1, le=100)
    """Brokers that hold each partition of a new topic."""

    retention_s: int = Field(86_400, ge=60, le=10**9)
    """How long a new topic keeps trades, in seconds."""

    def config(self) -> dict[str, str]:
        """Return the topic's own settings, by the names that Kafka gives them."""
        # Of three replicas one may be away, and an acknowledged trade is on two.
        in_sync = max(1, self.replication - 1)
        return {
            "message.timestamp.type": "LogAppendTime",
            "cleanup.policy": "delete",
            "retention.ms": str(self.retention_s * 1000),
            "max.message.bytes": str(MAX_MESSAGE_BYTES),
            "min.insync.replicas": str(in_sync),
        }
