"""A rig whose trade log is a topic of a real Kafka broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from secrets import token_hex

from confluent_kafka.admin import AdminClient, NewTopic

from ingest.kafka.address import KafkaTopic
from ingest.kafka.writer import KafkaLogWriter
from tests.conftest import eventually
from tests.e2e.books import Checked, Log, check_against_oracle
from tests.e2e.feeds import Feed, Scattered, feed_events, take_back
from tests.e2e.rig import RATE, Rig, watched
from tests.logged import logged_in_kafka
from tickthrottle_client.kafka_client import open_topic

STAMPED = {"message.timestamp.type": "LogAppendTime"}


class KafkaRig(Rig):
    """Everything around a job that reads a topic."""

    def __init__(
        self,
        folder: Path,
        window_ms: int,
        servers: str,
        partitions: int,
        *,
        is_keyed: bool = True,
    ) -> None:
        super().__init__(folder, window_ms)
        self.servers = servers
        self.partitions = partitions
        self.is_keyed = is_keyed
        self.topic = ""
        self.renew_log()

    def renew_log(self, **settings: str) -> None:
        """Make a new topic and have feeds and jobs use that."""
        self.topic = f"trades-{token_hex(4)}"
        create_topic(self.servers, self.topic, self.partitions, **settings)
        self.environment |= {
            "TICKTHROTTLE_TRADE_LOG": "kafka",
            "TICKTHROTTLE_KAFKA_SERVERS": self.servers,
            "TICKTHROTTLE_KAFKA_TOPIC": self.topic,
        }

    @property
    def log(self) -> Log:
        """What reads all of the topic."""
        return lambda: logged_in_kafka(self.servers, self.topic)

    def address(self) -> KafkaTopic:
        """Return where the topic is."""
        return KafkaTopic(self.servers, self.topic)

    def feed(self, rate: float = RATE, without_partition: int | None = None) -> Feed:
        """Start a feed; unkeyed, an instrument's trades go to every partition."""
        topic = self.address()
        info = open_topic(topic)
        events = feed_events(self._tape, rate, Random(1), info, without_partition)
        if self.is_keyed:
            if self.is_taking_back:
                events = take_back(events, Random(1))
            return Feed(KafkaLogWriter(topic, info), events)
        return Feed(Scattered(self.servers, self.topic, self.partitions), events)

    def check(self) -> Checked:
        """Compare everything published so far with the oracle, and the books."""
        return check_against_oracle(self.client, self.window_ms, log=self.log)


@contextmanager
def create_kafka_rig(
    folder: Path,
    window_ms: int,
    servers: str,
    partitions: int,
    *,
    is_keyed: bool = True,
) -> Iterator[KafkaRig]:
    """Yield a rig in a new folder, watched by a client, and end it afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    rig = KafkaRig(folder, window_ms, servers, partitions, is_keyed=is_keyed)
    try:
        with watched(rig):
            yield rig
    finally:
        rig.close()


def create_topic(servers: str, topic: str, partitions: int, **settings: str) -> None:
    """Create a topic stamped by the broker; ``settings`` have ``_`` for dots."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})
    more = {name.replace("_", "."): value for name, value in settings.items()}
    new = NewTopic(topic, partitions, 1, config={**STAMPED, **more})
    admin.create_topics([new])[topic].result()
    known = eventually(lambda: admin.list_topics(timeout=5).topics.get(topic))
    assert len(known.partitions) == partitions
