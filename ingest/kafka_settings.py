"""Settings of everything that uses a trade log which may be a topic of Kafka."""

from pathlib import Path

from pydantic import Field

from ingest.kafka_address import KafkaTopic, read_options
from ingest.log import LogKind
from ingest.process_settings import MetricsSettings, ProcessSettings


class TopicSettings(ProcessSettings):
    """Which trade log there is: Redis Streams, or a topic of Kafka.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win.
    """

    log: LogKind = "redis"
    """Where trades are logged: in Redis Streams, or in a topic of Kafka."""

    kafka_servers: str = Field("127.0.0.1:9092", min_length=1)
    """Addresses of some Kafka brokers, ``host:port``, with commas between them."""

    kafka_topic: str = Field("trades", pattern=r"^[A-Za-z0-9._-]{1,249}$")
    """Name of the topic that is the log."""

    kafka_config: Path | None = None
    """File of further options of librdkafka, ``name=value`` a line: SASL, SSL, any."""

    def topic(self) -> KafkaTopic | None:
        """Return the topic and how to reach it, None if the log is not Kafka's.

        Raises LogUnusable for a ``kafka_config`` that cannot be used.
        """
        if self.log != "kafka":
            return None
        options = read_options(self.kafka_config)
        return KafkaTopic(self.kafka_servers, self.kafka_topic, options)


class LogSettings(TopicSettings, MetricsSettings):
    """What every process that reads the trade log, or appends to it, is told of it."""
