"""Settings of the all-in-one runner."""

from pathlib import Path

from pydantic import Field, FilePath, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from gateway.settings import check_operators_port
from ingest.settings import LogLevel
from throttle.settings import PRODUCTS_PATTERN, default_state_dir


class StateSettings(BaseSettings):
    """Where runs of this machine keep their files.

    Read from the environment (``TICKTHROTTLE_`` plus the field's name in capitals).
    """

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_",
        frozen=True,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
    )

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for the run's files: ``run-<port>`` in it is emptied at every start."""


class RunSettings(StateSettings):
    """What ``tickthrottle run`` starts.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win. The parts read their own settings from
    the same environment.
    """

    port: int = Field(8000, ge=1, le=65_535)
    """Port of the page, on loopback."""

    operators_port: int | None = Field(None, ge=1, le=65_535)
    """Port of the operators' page, on loopback; without it, the one after ``port``."""

    rate: float = Field(750.0, gt=0, le=100_000)
    """Trades per second of the simulator."""

    tape: FilePath | None = None
    """A recorded tape to replay in place of the simulator."""

    speed: float = Field(1.0, gt=0, le=10_000)
    """How many times faster than it was recorded a tape is replayed. At 10 a window of
    two seconds holds twenty seconds of the tape.
    """

    feed: str | None = Field(None, pattern=r"^[\w.-]{1,100}(:[\w.]{1,100})?$")
    """An exchange in place of the simulator: upbit, binance, alpaca, kis, or an adapter
    of yours as module:Class.
    """

    feed_symbols: str = Field("", pattern=r"^\S*$", max_length=100_000)
    """Which symbols of the exchange, with commas between them; * is all of them."""

    issues_file: FilePath | None = None
    """What the issues are called; unset: the simulator's or the exchange's own list,
    nothing for a tape.
    """

    archive: bool = True
    """Whether windows are kept, in ``archive-<port>`` of the folder, which stays."""
    analytics: str = Field("bars,movers", pattern=rf"^(?:off|{PRODUCTS_PATTERN})$")
    """What the analytics job makes, by commas; off: it is not started."""

    log_level: LogLevel = "info"
    """Level of the parts' log files."""

    @model_validator(mode="after")
    def _check_operators(self) -> "RunSettings":
        check_operators_port(self.port, self.port_for_operators)
        if self.feed is not None and self.tape is not None:
            raise ValueError("feed and tape: only one of them can take the place")
        return self

    @property
    def port_for_operators(self) -> int:
        """Port of the operators' page."""
        return self.port + 1 if self.operators_port is None else self.operators_port
