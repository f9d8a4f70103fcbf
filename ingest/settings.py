"""Settings of everything that feeds or reads the trade log, and of every process."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, DirectoryPath, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.kafka.address import KafkaTopic, read_options
from ingest.tradelog.contract import LogKind
from tickthrottle_client.log_v1 import (
    CAP,
    LEAST_CAP,
    MOST_PARTITIONS,
    NAMESPACE_PATTERN,
    PARTITIONS,
    TOPIC_PATTERN,
)
from tickthrottle_client.redis_address import check_redis_url
from tickthrottle_client.server_url import split_url

ServerUrl = Annotated[str, AfterValidator(lambda url: split_url(url) and url)]
"""Address of a server of another kind, which may hold a password."""

_FILE = "file://"


def _read_redis_url(url: str) -> str:
    """Return the address, out of the file where one is named. Raises ValueError."""
    if url.startswith(_FILE):
        try:
            url = Path(url.removeprefix(_FILE)).read_text("utf-8").strip()
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it is no text"
            raise ValueError(f"the file cannot be read: {why}") from None
    return check_redis_url(url)


RedisUrl = Annotated[str, AfterValidator(_read_redis_url)]
"""Address of a Redis or Valkey server, or ``file:///path`` of a file that has it."""

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]


def variables_of(kind: type[BaseSettings]) -> dict[str, str]:
    """Return the environment variable of each setting that has one, by its name."""
    without: frozenset[str] = getattr(kind, "only_options", frozenset())
    return {n: variable_of(kind, n) for n in kind.model_fields if n not in without}


def variable_of(kind: type[BaseSettings], name: str) -> str:
    """Return the environment variable of a setting."""
    prefix = kind.model_config.get("env_prefix", "")
    return str(kind.model_fields[name].validation_alias or f"{prefix}{name}".upper())


def home_folder() -> Path:
    """Return the user's home; the root for one without, as that of a systemd unit."""
    try:
        return Path.home()
    except RuntimeError:
        return Path("/")


class ProcessSettings(BaseSettings):
    """How a process logs, and whether it shares its metrics with others.

    Read once at the process's entry from the environment: ``TICKTHROTTLE_`` plus the
    field's name in capitals, or its alias; arguments win.
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_",
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
        defer_build=True,
    )

    log_level: LogLevel = "info"
    """Lines below this level are not logged."""

    log_format: LogFormat = "auto"
    """How lines look: JSON objects, text, or (``auto``) text on a terminal only."""

    metrics_dir: DirectoryPath | None = Field(
        None, validation_alias="PROMETHEUS_MULTIPROC_DIR"
    )
    """Folder in which processes of one machine keep their metrics together."""


class MetricsSettings(ProcessSettings):
    """Where a process that serves nothing else shows its metrics."""

    metrics_host: str = "127.0.0.1"
    """Address on which metrics are served."""

    metrics_port: int = Field(0, ge=0, le=65_535)
    """Port on which metrics are served at ``/metrics``; 0: none."""


class TopicSettings(ProcessSettings):
    """Which pipeline it is: its server, and its trade log there or in Kafka."""

    redis_url: RedisUrl = Field("redis://127.0.0.1:6379", validation_alias="REDIS_URL")
    """Address of the Redis or Valkey server with the trade log and the stream."""

    namespace: str = Field("tt", pattern=f"^{NAMESPACE_PATTERN}$")
    """Prefix of every key and channel."""

    trade_log: LogKind = "redis"
    """Where trades are logged: in Redis Streams, or in a topic of Kafka."""

    kafka_servers: str = Field("127.0.0.1:9092", pattern="^[^@/]+$")
    """Addresses of some Kafka brokers, ``host:port``, with commas between them."""

    kafka_topic: str = Field("trades", pattern=f"^{TOPIC_PATTERN}$")
    """Name of the topic that is the log."""

    kafka_config: Path | None = None
    """File of further librdkafka options, ``name=value`` per line: SASL, SSL, any."""

    kafka_instruments_topic: str = Field("", pattern=rf"^({TOPIC_PATTERN})?$")
    """Compacted topic with the instrument table; without it, the table is in Redis."""

    schema_registry_url: ServerUrl = Field("", pattern=r"^(https?://\S+)?$")
    """Schema registry of Avro records: https://user:password@registry:8081."""

    def topic(self) -> KafkaTopic | None:
        """Return the topic and how to reach it, None if the log is not Kafka's.

        Raises LogUnusable for a ``kafka_config`` that cannot be used.
        """
        if self.trade_log != "kafka":
            return None
        options = read_options(self.kafka_config)
        return KafkaTopic(self.kafka_servers, self.kafka_topic, options)


class LogSettings(TopicSettings, MetricsSettings):
    """What every process that reads the trade log, or appends to it, is told of it."""

    partitions: int = Field(PARTITIONS, ge=1, le=MOST_PARTITIONS)
    """Partitions of a log that does not exist yet; an existing one keeps its own."""


class IngestSettings(LogSettings):
    """Where the trade log is and how far it may grow."""

    trade_log_cap: int = Field(CAP, ge=LEAST_CAP)
    """Most entries the whole log may hold; beyond it the oldest are dropped."""

    redis_replicas: int = Field(0, ge=0, le=10)
    """Replicas of the server in Redis that must have a trade, too, before it counts as
    acknowledged.
    """

    may_evict: bool = False
    """Append to a server in Redis that may evict keys, though trades may be lost."""

    list_instruments: bool = True
    """Whether the simulator, or an exchange's feed, tells the instrument table what its
    instruments are called, and what the exchange says of their days.
    """
