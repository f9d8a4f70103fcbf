"""Settings of every process: how it logs, and where its metrics are seen."""

from typing import Literal

from pydantic import DirectoryPath, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["auto", "console", "json"]


class ProcessSettings(BaseSettings):
    """How a process logs, and whether it shares its metrics with others.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win.
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_", frozen=True, extra="forbid", populate_by_name=True
    )

    log_level: LogLevel = "info"
    """Least level of the lines that are logged."""

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
    """Port on which metrics are served at ``/metrics``; 0: on none."""
