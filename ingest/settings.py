"""Settings of everything that appends to the trade log."""

from pydantic import Field

from ingest.kafka_settings import LogSettings


class IngestSettings(LogSettings):
    """Where the trade log is and how far it may grow.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    redis_url: str = Field("redis://127.0.0.1:6379", validation_alias="REDIS_URL")
    """Address of the Redis or Valkey server that holds the log."""

    namespace: str = Field("tt", pattern=r"^[A-Za-z0-9_.-]{1,32}$")
    """Prefix of every key and channel."""

    partitions: int = Field(4, ge=1, le=64)
    """Partitions of a log that does not exist yet; an existing one keeps its own."""

    log_cap: int = Field(4_000_000, ge=1_000)
    """Most entries the whole log may hold; beyond it the oldest are dropped."""
