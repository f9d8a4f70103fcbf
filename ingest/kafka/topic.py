"""A topic of Kafka as a trade log: made, looked at, and judged."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from confluent_kafka import KafkaError
from confluent_kafka.cimpl import NewTopic

from ingest.kafka.address import KafkaTopic
from ingest.kafka.topic_plan import TopicPlan
from ingest.trade import MAX_PAYLOAD_BYTES
from tickthrottle_client.kafka_client import (
    ANSWER_WITHIN_S,
    Reports,
    answer,
    ask_config,
    create_admin,
    describe,
    identity,
)

# What a batch of one message needs beside the trade.
_OVERHEAD_BYTES = 200
_SHORT_RETENTION = timedelta(minutes=10)
_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)
_KNOWN_WITHIN_S = 5.0


@dataclass(frozen=True, slots=True)
class TopicState:
    """What a topic is like, as its brokers tell."""

    log_id: str
    partitions: int
    replication: int
    timestamp_type: str
    cleanup_policy: str
    retention_ms: int
    retention_bytes: int
    max_message_bytes: int
    min_insync_replicas: int

    def lines(self) -> Iterator[str]:
        """Yield what is there, a fact a line, by the names that Kafka uses."""
        yield f"id {self.log_id}"
        yield f"partitions {self.partitions}, replicas {self.replication}"
        yield f"message.timestamp.type {self.timestamp_type}"
        yield f"cleanup.policy {self.cleanup_policy}"
        kept_for = "for ever"
        if 0 <= self.retention_ms <= _LONGEST_MS:
            kept_for = str(timedelta(milliseconds=self.retention_ms))
        yield f"retention.ms {self.retention_ms} ({kept_for})"
        if self.retention_bytes >= 0:
            yield f"retention.bytes {self.retention_bytes} a partition"
        yield f"max.message.bytes {self.max_message_bytes}"
        yield f"min.insync.replicas {self.min_insync_replicas}"

    def warnings(self) -> Iterator[str]:
        """Yield in words what about the topic does not fit a trade log."""
        if self.timestamp_type != "LogAppendTime":
            yield (
                f"message.timestamp.type={self.timestamp_type}: producers stamp the "
                "trades; windows are cut by these stamps, and a trade that is stamped "
                "late or early falls into another window. With LogAppendTime the "
                "brokers stamp them"
            )
        if "compact" in self.cleanup_policy:
            yield (
                f"cleanup.policy={self.cleanup_policy}: only the newest trade of "
                "an instrument is sure to stay; a trade that is deleted before it is "
                "read is in no window, and a window computed anew may differ"
            )
        if 0 <= self.retention_ms < _SHORT_RETENTION // timedelta(milliseconds=1):
            yield (
                f"retention.ms={self.retention_ms}: a throttle that is down for longer "
                "finds its trades deleted"
            )
        if self.max_message_bytes < MAX_PAYLOAD_BYTES + _OVERHEAD_BYTES:
            yield (
                f"max.message.bytes={self.max_message_bytes}: a trade may have "
                f"{MAX_PAYLOAD_BYTES} bytes; feeds count a larger one as refused, "
                "too_large_for_log"
            )
        if self.replication == 1:
            yield "one replica: if its broker is lost, so are the trades"
        elif self.min_insync_replicas == 1:
            yield (
                "min.insync.replicas=1: an acknowledged trade may be on one broker only"
            )


def create_topic(topic: KafkaTopic, partitions: int, plan: TopicPlan) -> bool:
    """Create a topic; return False if there is one already, which stays as it is.

    Brokers know of it when this returns. Raises LogAway, and LogUnusable when refused.
    """
    reports = Reports()
    admin = create_admin(topic, reports)
    new = NewTopic(topic.topic, partitions, plan.replication, config=plan.config())
    asked = admin.create_topics([new], request_timeout=ANSWER_WITHIN_S)[topic.topic]
    error = asked.exception()
    if _code(error) == KafkaError.TOPIC_ALREADY_EXISTS:
        return False
    answer(topic, asked, reports)
    deadline = time.monotonic() + _KNOWN_WITHIN_S
    while time.monotonic() < deadline:
        described = describe(topic, admin)
        if _code(described.exception()) != KafkaError.UNKNOWN_TOPIC_OR_PART:
            break
        time.sleep(0.05)
    return True


def look_at(topic: KafkaTopic) -> TopicState | None:
    """Return what a topic is like, None if there is none.

    Raises LogAway, and LogUnusable when the brokers refuse to say.
    """
    reports = Reports()
    admin = create_admin(topic, reports)
    asked = describe(topic, admin)
    if _code(asked.exception()) == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return None
    described = answer(topic, asked, reports)
    config = answer(topic, ask_config(topic, admin), reports)
    info = identity(topic, described)
    return TopicState(
        log_id=info.log_id,
        partitions=info.partitions,
        replication=min(len(p.replicas) for p in described.partitions),
        timestamp_type=config["message.timestamp.type"].value,
        cleanup_policy=config["cleanup.policy"].value,
        retention_ms=int(config["retention.ms"].value),
        retention_bytes=int(config["retention.bytes"].value),
        max_message_bytes=int(config["max.message.bytes"].value),
        min_insync_replicas=int(config["min.insync.replicas"].value),
    )


def _code(error: BaseException | None) -> int | None:
    """Return the code of a broker's refusal; None if it is no such thing."""
    cause = error.args[0] if error is not None and error.args else None
    return cause.code() if isinstance(cause, KafkaError) else None
