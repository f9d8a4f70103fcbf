"""How far a topic of Kafka goes: where each partition ends, and when it grew last."""

from dataclasses import dataclass

from ingest.kafka.address import KafkaTopic
from ingest.kafka.offsets import KafkaOffsets
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.kafka_client import Reports, open_topic


@dataclass(frozen=True, slots=True)
class KafkaEnd:
    """The last position of a partition, -1 if it never had one.

    ``append_ms`` is the newest stamp among the entries that are left.
    """

    position: int
    append_ms: int | None


class KafkaEnds:
    """Asks brokers for the ends of a topic, on connections that it keeps.

    For one thread at a time.
    """

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._log_id = ""
        self._offsets: KafkaOffsets | None = None

    def look(self) -> tuple[str, dict[int, KafkaEnd]]:
        """Return the log's id and the end of each partition.

        Raises LogAway and LogUnusable.
        """
        if self._offsets is None:
            info = open_topic(self._topic)
            self._log_id = info.log_id
            self._offsets = KafkaOffsets(self._topic, info, (), Reports())
        try:
            ends, stamps = self._offsets.ends(), self._offsets.newest_stamps()
        except LogUnusable:
            # Made again, perhaps: the next look finds the new one.
            self._offsets = None
            raise
        return self._log_id, {
            p: KafkaEnd(end - 1, stamps[p] if stamps.get(p, -1) >= 0 else None)
            for p, end in ends.items()
        }
