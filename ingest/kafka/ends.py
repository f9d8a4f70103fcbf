"""How far a topic of Kafka goes: where each partition ends, and when it grew last."""

import time

from ingest.kafka.address import KafkaTopic
from ingest.kafka.offsets import KafkaOffsets
from ingest.kafka.partition_end import KafkaEnd, look_at
from ingest.tradelog.contract import LogUnusable
from tickthrottle_client.kafka_client import Reports, open_topic


class KafkaEnds:
    """Asks brokers for the ends of a topic; for one thread at a time."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._log_id = ""
        self._offsets: KafkaOffsets | None = None
        self._before: dict[int, KafkaEnd] = {}

    def look(self) -> tuple[str, dict[int, KafkaEnd]]:
        """Return log id and ends by partition. Raises LogAway and LogUnusable."""
        if self._offsets is None:
            info = open_topic(self._topic)
            self._log_id, self._before = info.log_id, {}
            self._offsets = KafkaOffsets(self._topic, info, (), Reports())
        try:
            ends, stamps = self._offsets.ends(), self._offsets.newest_stamps()
            highs = self._offsets.highs()
        except LogUnusable:
            # Made again, perhaps: the next look finds the new one.
            self._offsets = None
            raise
        now_ms = time.time_ns() // 1_000_000
        self._before = {
            p: look_at(
                *(self._before.get(p), end, highs.get(p, end), stamps.get(p, -1)),
                now_ms,
            )
            for p, end in ends.items()
        }
        return self._log_id, self._before
