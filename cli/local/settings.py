"""Settings of the all-in-one runner."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, FilePath, model_validator
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from gateway.settings import check_operators_port
from ingest.settings import LogLevel, ProcessSettings, ServerUrl
from ingest.tradelog.contract import LogKind
from throttle.settings import DECODER_PATTERN, PRODUCTS_PATTERN, default_state_dir
from tickthrottle_client.log_v1 import TOPIC_PATTERN

NO_FEED = "none"
"""In place of a feed's name: others append to the log."""


class StateSettings(BaseSettings):
    """Where runs of this machine keep their files.

    Read from the environment (``TICKTHROTTLE_`` plus the field's name in capitals).
    """

    model_config = ProcessSettings.model_config

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for the run's files: ``run-<port>`` in it is emptied at every start."""


class LogOfEnvironment(BaseSettings):
    """Which log the environment names; a run with a feed of its own ignores it."""

    model_config = SettingsConfigDict(
        env_prefix="TICKTHROTTLE_", frozen=True, extra="ignore"
    )

    trade_log: str = ""
    kafka_servers: str | None = None
    kafka_topic: str | None = None


class RunSettings(StateSettings):
    """What ``tickthrottle run`` starts.

    Read once at the process's entry from the environment (``TICKTHROTTLE_`` plus the
    field's name in capitals); arguments win. The parts read their own settings from
    the same environment. What is in ``only_options`` is an option of the command alone.
    """

    only_options: ClassVar[frozenset[str]] = frozenset(
        {"rate", "tape", "speed", "feed", "feed_symbols", "archive"}
    )

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

    # Repeated so many times, letters of all alphabets would be 18 MiB of every process.
    feed: str | None = Field(None, pattern=r"^[\w.-]+(:[\w.]+)?$", max_length=200)
    """An exchange in place of the simulator: upbit, binance, alpaca, kis, or an adapter
    of yours as module:Class; none: no feed, others append to the log.
    """

    trade_log: LogKind | None = None
    """With ``feed`` none: kafka reads a topic in place of the run's own log."""

    kafka_servers: str | None = Field(None, min_length=1)
    """That topic's brokers, ``host:port``, with commas between them."""

    kafka_topic: str | None = Field(None, pattern=f"^{TOPIC_PATTERN}$")
    """Name of that topic."""

    kafka_config: Path | None = None
    """File of further librdkafka options, ``name=value`` per line: SASL, SSL, any."""

    decoder: str | None = Field(None, pattern=DECODER_PATTERN)
    """Turns an entry of that log into trades, ``package.module:function``; ``avro`` or
    ``avro+package.module:function`` of records of a schema registry.
    """

    schema_registry_url: ServerUrl | None = Field(None, pattern=r"^https?://\S+$")
    """That registry: https://user:password@registry:8081."""

    start: Literal["earliest", "latest"] | None = None
    """Where that log is read from: its oldest entry (unless told otherwise), or now."""

    feed_symbols: str = Field("", pattern=r"^\S*$", max_length=100_000)
    """Which symbols of the exchange, with commas between them; * is all of them."""

    instruments_file: FilePath | None = None
    """What the instruments are called; unset: the simulator's or the exchange's own
    list, nothing for a tape.
    """

    archive: bool = True
    """Whether windows are kept, in ``archive-<port>`` of the folder, which stays."""

    analytics: str = Field("bars,movers", pattern=rf"^(?:off|{PRODUCTS_PATTERN})$")
    """What the analytics job makes, by commas; off: it is not started."""

    log_level: LogLevel = "info"
    """Level of the parts' log files."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[Any, ...]:
        def variables() -> dict[str, Any]:
            values = env_settings()
            return {n: v for n, v in values.items() if n not in cls.only_options}

        return init_settings, variables

    @model_validator(mode="after")
    def _check_operators(self) -> "RunSettings":
        check_operators_port(self.port, self.port_for_operators)
        if self.feed is not None and self.tape is not None:
            raise ValueError("feed and tape: only one of them can take the place")
        return self

    @model_validator(mode="after")
    def _check_log(self) -> "RunSettings":
        around = LogOfEnvironment()
        if self.follows_log:
            places = {self.kafka_servers, self.kafka_topic, None}
            said = places - {around.kafka_servers, around.kafka_topic, None}
            if said and self.trade_log != "kafka":
                raise ValueError("kafka_servers, kafka_topic: need --trade-log kafka")
        elif self.trade_log == "kafka" != around.trade_log:
            raise ValueError(
                "trade_log kafka: the run's own feed would append to the topic; with "
                "--feed none the run only reads it"
            )
        return self

    @property
    def follows_log(self) -> bool:
        """Whether the run has no feed of its own."""
        return self.feed == NO_FEED

    @property
    def exchange(self) -> str | None:
        """The exchange that feeds the run, None if none does."""
        return None if self.follows_log else self.feed

    @property
    def is_simulated(self) -> bool:
        return self.feed is None and self.tape is None

    @property
    def port_for_operators(self) -> int:
        return self.port + 1 if self.operators_port is None else self.operators_port
