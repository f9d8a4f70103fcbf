"""Settings of the all-in-one runner."""

from pathlib import Path
from typing import Literal

from pydantic import Field, FilePath
from pydantic_settings import BaseSettings, SettingsConfigDict

from throttle.settings import default_state_dir


class RunSettings(BaseSettings):
    """What ``tickthrottle run`` starts and where it keeps its files.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win. The parts read their own settings from
    the same environment.
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_", frozen=True, extra="forbid", populate_by_name=True
    )

    port: int = Field(8000, ge=1, le=65_535)
    """Port of the page, on loopback."""

    rate: float = Field(750.0, gt=0, le=100_000)
    """Trades per second of the simulator."""

    tape: FilePath | None = None
    """A recorded tape to replay in place of the simulator."""

    speed: float = Field(1.0, gt=0, le=10_000)
    """How many times faster than it was recorded a tape is replayed."""

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for the run's files: ``run-<port>`` in it is emptied at every start."""

    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Level of the parts' log files."""
