"""Settings of the archive."""

from pathlib import Path

from pydantic import Field

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

    archive_name: str = Field("", pattern=r"^[A-Za-z0-9_-]{0,32}$")
    """Name of the archive; empty: parquet or postgres. One process of a name stores."""

    archive_bytes: int = Field(107_374_182_400, ge=1_048_576)
    """Most bytes of the Parquet files; beyond it the oldest go."""

    archive_days: int = Field(0, ge=0, le=36_500)
    """How many days are kept, of Parquet or PostgreSQL; 0: as many as there is room."""

    @property
    def destination(self) -> str:
        """What is archived to: ``parquet`` or ``postgres``."""
        return "postgres" if self.postgres_url else "parquet"

    @property
    def name(self) -> str:
        """The archive's name."""
        return self.archive_name or self.destination
