"""What a load test is asked for: the options of ``tickthrottle load``. Pure."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from ingest.tradelog.contract import LogKind

POLL_EVERY_S = (10.0, 2.0)
"""The ways of polling that a stream is compared with; polling clients do the first."""


LATE = ("lag.p99>2s", "feed.behind.p99>1s")
"""Unless asked for otherwise: a window that comes when the next one is due is late."""

EVERY_KIND = (
    "watch:82,slow:10,market:1,stalled:1,reconnecting:2,sse:2,polling:2"  # of a hundred
)


class LoadChoices(BaseModel):
    """What was asked for; a scenario sets some of what was not given."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True
    )

    scenario: str | None = None
    """A load by name: standard, short, opening, bursts, stress. Options win over it.
    [default: short]"""

    rate: float = Field(900, ge=0.1, le=1_000_000)
    """Trades per second."""

    profile: str | None = None
    """The rate over time: steps and ramps, an opening, bursts, such as
    900:60s,900..5000:60s,1700/100ms@30s; it is measured to its end."""

    tapes: tuple[Path, ...] = ()
    """Play this tape, not the simulator; may be repeated."""

    speed: float = 1
    """How many times faster than recorded."""

    max_gap: float | None = None
    """No silence of the tapes lasts longer than this, in seconds."""

    issues: int = 2_879
    """Number of issues of the simulator."""

    disorder: float | None = None
    """Share of trades that come late, 0 to 1. [default: 0.02]"""

    repeats: float | None = None
    """Share of trades that come twice, 0 to 1. [default: 0.01]"""

    malformed: float = 0
    """Share of broken trades, 0 to 1."""

    clients: int = 500
    """Number of clients."""

    keys: int = 30
    """Issues of each client."""

    mix: str = EVERY_KIND
    """Kinds of clients and their shares, such as watch:9,slow:1; kinds are watch,
    market, slow, stalled, reconnecting, sse, polling."""

    poll_every_s: tuple[float, ...] = POLL_EVERY_S
    """Seconds between two requests of a polling client; `--compare-polling` serves once
    for each value, other runs take the first."""

    seconds: float = Field(60, ge=4, le=86_400)
    """How long to measure; without it, a profile is measured to its end."""

    warm_up_s: float = Field(30, ge=4, le=3_600)
    """Seconds of load before that."""

    processes: int = Field(2, ge=1, le=64)
    """Processes of clients."""

    rules: tuple[str, ...] = LATE
    """A threshold, such as 'lag.p99>250ms'; may be repeated. Broken: exit code 1."""

    raised: Literal["rate", "clients"] | None = None
    """Raise this until a threshold breaks."""

    start: float | None = None
    """Where a search begins. [default: rate 10000, clients 1000]"""

    most: float | None = None
    """Where a search ends. [default: rate 400000, clients 15000]"""

    step_s: float = Field(24, ge=4)
    """How long a search measures each step, in seconds."""

    compares_polling: bool = False
    """Serve the audience by polling, then by WebSocket."""

    gateways: tuple[str, ...] = ()
    """Load this running gateway, such as http://127.0.0.1:8000, and not one started
    for it; may be repeated. Needs the deployment's Redis, too."""

    token_file: Path | None = None
    """File with the token that clients show to those gateways."""

    trade_log: LogKind | None = None
    """Where those gateways' trades are logged. [default: as in the environment]"""

    kafka_servers: str | None = None
    """Addresses of some of their Kafka brokers, with commas between them."""

    kafka_topic: str | None = None
    """The topic that is their log."""

    redis_url: str | None = None
    """Their Redis or Valkey server."""

    out: Path | None = None
    """Where to leave the report: this name with .json and .html.
    [default: load-<time>]"""

    title: str | None = None
    """Title of the report."""


OF_A_DEPLOYMENT = ("trade_log", "kafka_servers", "kafka_topic", "redis_url")
"""Where a running deployment is, for ``IngestSettings``."""
