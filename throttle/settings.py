"""Settings of the jobs of Spark: of both, of the throttle, of the analytics job."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import available_timezones

import orjson
from pydantic import (
    AfterValidator,
    Field,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

from ingest.market_hours.trading_sessions import TradingSessions
from ingest.series import parse_series
from ingest.settings import LogSettings, home_folder
from ingest.trade import MAX_ENTRY_BYTES

_PRODUCT = r"(?:bars|movers|bursts|moves)"
PRODUCTS_PATTERN = rf"{_PRODUCT}(?:,{_PRODUCT})*"
_CHECKPOINT = r"^(?:[a-z][a-z0-9+.-]*://?|/)\S+$|^$"
_CALENDAR = r"(?:[A-Z]{2}=)?[A-Za-z0-9_+/-]+@(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_CALENDARS = rf"^{_CALENDAR}(?:,{_CALENDAR})*$"
CHAIN_KEY_BYTES = 32
EVERYDAY = "Asia/Seoul@00:00"
"""The calendar of instruments that no other one is named for."""
_SPAN = r"[0-9]{1,5}(?:-[0-9]{1,5})?"
_PARTITIONS = rf"^(?:{_SPAN}(?:,{_SPAN})*)?$"
_FUNCTION = r"[A-Za-z_][\w.]*:[A-Za-z_]\w*"
DECODER_PATTERN = rf"^(?:{_FUNCTION}|avro(?:\+{_FUNCTION})?)?$"

# Options of Spark that are not the operator's, and what to do in their place.
_OURS = {
    "spark.master": "set spark_master",
    "spark.driver.memory": "set spark_memory_mb",
    "spark.submit.deployMode": "the job is the driver and runs where it is started",
    "spark.remote": "the job is the driver and runs where it is started",
    "spark.api.mode": "the job is the driver and runs where it is started",
    "spark.sql.session.timeZone": "windows are computed in UTC",
}


def _check_option(name: str) -> str:
    if name in _OURS:
        raise ValueError(f"may not be set: {_OURS[name]}")
    return name


def _check_series(text: str) -> str:
    parse_series(text)
    return text


def _check_sessions(text: str) -> str:
    TradingSessions.parse(text)
    return text


SparkOption = Annotated[
    str, Field(pattern=r"^spark\.[^\s=]+$"), AfterValidator(_check_option)
]


def default_state_dir() -> Path:
    """Return where checkpoints live unless told otherwise."""
    return home_folder() / ".local" / "state" / "tickthrottle"


class SparkSettings(LogSettings):
    """What a job of Spark reads of the log, and how Spark runs it.

    Read once at the process's entry from the environment (``REDIS_URL``, and
    ``TICKTHROTTLE_`` plus the field's name in capitals); arguments win.
    """

    only_partitions: str = Field("", pattern=_PARTITIONS)
    """Read only these partitions, as in ``0-11,14``; empty: all. For several jobs."""

    start: Literal["earliest", "latest"] = "earliest"
    """Where a new job begins: with the oldest entry of the log, or now."""

    kafka_margin_ms: int = Field(30, ge=0, le=10_000)
    """How long after its end a window is cut, for brokers whose clocks are ahead or
    behind.
    """

    decoder: str = Field("", pattern=DECODER_PATTERN)
    """Turns an entry into a trade, ``package.module:function``; empty: JSON. ``avro``:
    records of the schema registry, ``avro+package.module:function`` a function of them.
    """

    standby: bool = False
    """Wait, warm, until the running job of this name has ended; then take over."""

    lease_ms: int = Field(2_000, ge=500, le=60_000)
    """A job that is silent for this long counts as dead; a standby then takes over."""

    max_windows_per_batch: int = Field(30, ge=1, le=1_000)
    """How many windows one batch may hold when the job is behind."""

    max_ahead_ms: int = Field(5_000, ge=0)
    """A trade whose time is further ahead of its append time is refused."""

    max_entry_bytes: int = Field(MAX_ENTRY_BYTES, ge=256, le=16 * 2**20)
    """An entry of the log of more bytes is refused without being decoded."""

    speedups: bool = True
    """Use the compiled package ``tickthrottle-speedups``, where it is installed."""

    day_calendars: str = Field(EVERYDAY, pattern=_CALENDARS)
    """Time zone of the exchange's days, and when they begin. Instruments of other
    markets have calendars of their own, by the first two letters of their ISIN, as in
    ``Asia/Seoul@00:00,US=America/New_York@09:30,QM=UTC@00:00``.
    """

    series: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9_, -]*$"), AfterValidator(_check_series)
    ] = ""
    """Series kept of every instrument beside it, as ``KRX,NXT,regular,KRX-regular``:
    the trades of a venue, of a session, of both."""

    sessions: Annotated[
        str, Field(pattern=r"^[\w/=,. -]*$"), AfterValidator(_check_sessions)
    ] = ""
    """Calendars that say the session of a trade that says none: ``XKRX``, or by the
    first two letters of an ISIN ``KR=XKRX,US=XNYS``."""

    spark_memory_mb: int = Field(512, ge=480)
    """Heap of Spark's JVM (on a cluster: of the driver's), MiB.

    Spark wants 450 MiB at least, and is shown a thirtieth less than there are.
    """

    spark_master: str | None = Field(
        None,
        pattern=r"^(local(\[(\d+|\*)(,\d+)?\])?|spark://\S+|yarn|k8s://\S+)$",
    )
    """Where Spark runs its tasks, such as ``spark://host:7077``; unset: two at a time,
    in this process.
    """

    spark_conf: Annotated[dict[SparkOption, str], NoDecode] = Field(
        default_factory=dict
    )
    """Further options of Spark, as a JSON object; they win over the job's own."""

    live_tasks: int = Field(1, ge=1, le=64)
    """Tasks that read a live window side by side, at most one per partition."""

    backlog_tasks: int = Field(2, ge=1, le=64)
    """Tasks that read a backlog side by side, at most one per partition."""

    state_dir: Path = Field(default_factory=default_state_dir)
    """Folder for checkpoints and scratch files."""

    java_home: Path | None = Field(None, validation_alias="JAVA_HOME")
    """Java to run Spark on; unset: the bundled one, or else the one on PATH."""

    @field_validator("spark_conf", mode="before")
    @classmethod
    def _from_json(cls, value: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            raise ValueError(
                'should be a JSON object such as {"spark.executor.cores": "2"}'
            ) from None

    @field_validator("only_partitions")
    @classmethod
    def _check_spans(cls, text: str) -> str:
        for first, last in _spans(text):
            if first > last:
                raise ValueError(f"{first}-{last} goes down, it must go up")
        return text

    @field_validator("day_calendars")
    @classmethod
    def _check_calendars(cls, text: str) -> str:
        parts = [part.rpartition("=")[::2] for part in text.split(",")]
        for letters, calendar in parts:
            if calendar.partition("@")[0] not in available_timezones():
                whose = f"{letters}: " if letters else ""
                raise ValueError(f"{whose}needs a time zone such as Asia/Seoul")
        if len(dict(parts)) < len(parts):
            raise ValueError("names one of them twice")
        return text

    def calendars(self) -> tuple[str, str, str]:
        """Return the usual zone, when a day begins there, and the calendars by letters.

        The last is as in ``US=America/New_York@09:30,QM=UTC@00:00``.
        """
        parts = self.day_calendars.split(",")
        usual = next((part for part in parts if "=" not in part), EVERYDAY)
        zone, _, begins = usual.partition("@")
        return zone, begins, ",".join(part for part in parts if "=" in part)

    def only(self) -> tuple[int, ...]:
        """Return the partitions to read, in order; none at all stand for all."""
        wanted = (range(a, b + 1) for a, b in _spans(self.only_partitions))
        return tuple(sorted(set(chain.from_iterable(wanted))))


class ThrottleSettings(SparkSettings):
    """How the throttle cuts the log into windows, and how long they are kept."""

    job: str = Field("throttle", pattern=r"^[A-Za-z0-9_-]{1,32}$")
    """Name of the job; a restart under the same name continues where it stopped."""

    window_ms: int = Field(2_000, ge=100, le=600_000)
    """Length of a window, milliseconds; windows are aligned to 1970."""

    trade_log_retention_s: int = Field(300, ge=0)
    """How long trades stay in the log after they were committed, seconds."""

    window_log: int = Field(450, ge=1)
    """Windows kept in the window log (450 of 2 s: 15 minutes)."""

    chain_key_file: Path | None = None
    """The file with the secret that the links of windows are signed with."""

    @model_validator(mode="after")
    def _check_key(self) -> Self:
        self.chain_key()
        return self

    def chain_key(self) -> bytes:
        """Return the secret, empty without a file. Raises ValueError."""
        path = self.chain_key_file
        if path is None:
            return b""
        try:
            key = path.read_bytes().strip()
        except OSError as error:
            reason = f"{path} cannot be read: {error.strerror}"
            raise ValueError(f"chain_key_file: {reason}") from None
        if len(key) < CHAIN_KEY_BYTES:
            raise ValueError(
                f"chain_key_file: {path} must hold {CHAIN_KEY_BYTES} bytes or more, "
                f"not {len(key)}"
            )
        return key


class AnalyticsSettings(SparkSettings):
    """What the analytics job makes, and how much of it is kept."""

    analytics: str = Field("bars,movers", pattern=rf"^{PRODUCTS_PATTERN}$")
    """What is made: bars, movers, bursts, moves, with commas between them."""

    analytics_batch_ms: int = Field(2_000, ge=200, le=60_000)
    """How often bars, bursts and moves are brought up to date, milliseconds."""

    analytics_checkpoint: str = Field("", pattern=_CHECKPOINT)
    """Where Spark keeps the state: a folder, or any address that Hadoop's file systems
    know; unset: ``analytics`` in the state folder.
    """

    bars_ms: int = Field(60_000, ge=1_000, le=60_000)
    """Length of a bar, milliseconds; a minute must be a multiple of it."""

    bars_kept: int = Field(1_440, ge=1, le=1_000_000)
    """Bars kept of an instrument (1,440 of a minute: a day round the clock)."""

    lateness_s: int = Field(3_600, ge=0, le=86_400)
    """A trade amends a bar that closed up to this long ago; later it is too late."""

    movers_span_s: int = Field(300, ge=10, le=3_600)
    """Movers are of so many seconds."""

    movers_every_s: int = Field(10, ge=5, le=600)
    """Movers are listed this often, seconds."""

    burst_gap_ms: int = Field(10_000, ge=1_000, le=600_000)
    """A burst ends when its instrument was not traded for this long, milliseconds."""

    burst_trades: int = Field(50, ge=2, le=1_000_000)
    """Fewest trades of a burst."""

    move_percent: Decimal = Field(
        Decimal(3), ge=Decimal("0.01"), le=1_000, decimal_places=6
    )
    """A price that rises or falls by this many per cent within a span has moved."""

    move_span_ms: int = Field(10_000, ge=100, le=600_000)
    """Length of that span, milliseconds."""

    events_kept: int = Field(1_000, ge=1, le=1_000_000)
    """Bursts kept, and moves kept."""

    @field_validator("bars_ms")
    @classmethod
    def _check_bars(cls, bars_ms: int) -> int:
        if 60_000 % bars_ms:
            raise ValueError("a minute must be a multiple of it")
        return bars_ms

    @field_validator("movers_every_s")
    @classmethod
    def _check_every(cls, every_s: int, info: ValidationInfo) -> int:
        if info.data.get("movers_span_s", every_s) % every_s:
            raise ValueError("movers_span_s must be a multiple of it")
        return every_s

    def products(self) -> tuple[str, ...]:
        """Return what is made, each once."""
        return tuple(dict.fromkeys(self.analytics.split(",")))


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        yield int(first), int(last or first)
