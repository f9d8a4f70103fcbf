"""Settings of the archive."""

from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from ingest.settings import MetricsSettings, ServerUrl, TopicSettings, home_folder


def default_archive_dir() -> Path:
    """Return where the archive is unless told otherwise."""
    return home_folder() / ".local" / "state" / "tickthrottle" / "archive"


class ArchiveSettings(TopicSettings, MetricsSettings):
    """Where published windows are kept, and how much of them.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    archive_dir: Path = Field(default_factory=default_archive_dir)
    """Folder of the archive's Parquet files."""

    postgres_url: ServerUrl = Field("", pattern=r"^(postgres(ql)?://\S+)?$")
    """Database to archive to, in place of Parquet files: postgresql://user@host/name."""

    archive_topics: str = Field("", pattern=r"^([A-Za-z0-9._-]{1,200})?$")
    """Begin of the names of topics at kafka_servers to relay to, in place of files."""

    archive_format: Literal["json", "avro"] = "json"
    """How records of topics are written; avro: with schemas in schema_registry_url."""

    archive_name: str = Field("", pattern=r"^[A-Za-z0-9_-]{0,32}$")
    """Name of the archive; empty: parquet, postgres or kafka. One of a name stores."""

    archive_bytes: int = Field(107_374_182_400, ge=1_048_576)
    """Most bytes of the Parquet files; beyond it the oldest go."""

    archive_days: int = Field(0, ge=0, le=36_500)
    """How many days are kept, of Parquet or PostgreSQL; 0: as many as there is room."""

    @model_validator(mode="after")
    def _has_one_place(self) -> Self:
        if self.postgres_url and self.archive_topics:
            raise ValueError("archive_topics: not with postgres_url, an archive is one")
        is_avro = self.archive_topics and self.archive_format == "avro"
        if is_avro and not self.schema_registry_url:
            raise ValueError(
                "archive_format avro: needs schema_registry_url, where the schemas go"
            )
        return self

    @property
    def destination(self) -> str:
        """What is archived to: ``parquet``, ``postgres`` or ``kafka``."""
        if self.archive_topics:
            return "kafka"
        return "postgres" if self.postgres_url else "parquet"

    @property
    def name(self) -> str:
        return self.archive_name or self.destination
