"""What a load test is asked for. Pure."""

from pathlib import Path
from typing import Literal

from pydantic import Field

from ingest.files.file_form import FrozenOptions

LATE = ("lag.p99>2s", "feed.behind.p99>1s")
"""Unless asked for otherwise: a window that comes when the next one is due is late."""

EVERY_KIND = (
    "watch:82,slow:10,market:1,stalled:1,reconnecting:2,sse:2,polling:2"  # of a hundred
)


class LoadChoices(FrozenOptions):
    """What was asked for; a scenario sets some of what was not given."""

    scenario: str | None = None
    """A load by name: standard, short, opening, bursts, stress, refused, soak.
    Options win over it. [default: short]"""

    rate: float = Field(900, ge=0.1, le=1_000_000)
    """Trades per second."""

    profile: str | None = None
    """The rate over time: steps and ramps, an opening, bursts, such as
    900:60s,900..5000:60s,1700/100ms@30s; it is measured to its end."""

    tapes: tuple[Path, ...] = ()
    """Play this tape, not the simulator; may be repeated."""

    speed: float = 1
    """How many times faster than recorded."""

    clients: int = 500
    """Number of clients."""

    keys: int = 30
    """Instruments of each client."""

    mix: str = EVERY_KIND
    """Kinds of clients and their shares, such as watch:9,slow:1; kinds are watch,
    market, slow, stalled, reconnecting, sse, polling."""

    seconds: float = Field(60, ge=4, le=86_400)
    """How long to measure; without it, a profile is measured to its end."""

    rules: tuple[str, ...] = LATE
    """A threshold, such as 'lag.p99>250ms'; may be repeated. Broken: exit code 1."""

    raised: Literal["rate", "clients"] | None = None
    """Raise this until a threshold breaks."""

    compares_polling: bool = False
    """Serve the audience by polling, then by WebSocket."""

    gateways: tuple[str, ...] = ()
    """Load this running gateway, such as http://127.0.0.1:8000, and not one started
    for it; may be repeated. Needs the deployment's Redis and log, too, as in the
    environment."""

    token_file: Path | None = None
    """File with the token that clients show to those gateways."""

    out: Path | None = None
    """Where to leave the report: this name with .json and .html.
    [default: load-<time>]"""

    instruments: int = 2_879
    """Number of instruments of the simulator. No option, as is what follows."""

    malformed: float = Field(0, ge=0, le=0.97)
    """Share of the simulator's trades that break a rule."""

    warm_up_s: float = Field(30, ge=4, le=3_600)
    """Seconds of load before it is measured."""

    processes: int = Field(2, ge=1, le=64)
    """Processes of clients."""


OPTIONS = tuple(LoadChoices.model_fields)[:15]
"""The fields that `tickthrottle load` has options for."""
