"""Settings of the all-in-one runner."""

from pathlib import Path

from pydantic import Field, FilePath
from pydantic_settings import BaseSettings, SettingsConfigDict

from ingest.process_settings import LogLevel
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

    ops_port: int | None = Field(None, ge=1, le=65_535)
    """Port of the operators' page, on loopback; without it, the one after ``port``."""

    rate: float = Field(750.0, gt=0, le=100_000)
    """Trades per second of the simulator."""

    tape: FilePath | None = None
    """A recorded tape to replay in place of the simulator."""

    speed: float = Field(1.0, gt=0, le=10_000)
    """How many times faster than it was recorded a tape is replayed."""

    issues_file: FilePath | None = None
    """What the issues are called; unset: the simulator's own, nothing for a tape."""

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for the run's files: ``run-<port>`` in it is emptied at every start."""

    log_level: LogLevel = "info"
    """Level of the parts' log files."""

    @property
    def operators_port(self) -> int:
        """Port of the operators' page."""
        return self.port + 1 if self.ops_port is None else self.ops_port
