"""PURE: loads with a name; whatever is given on the command line wins over them."""

from dataclasses import dataclass

LATE = ("lag.p99>2s", "feed.behind.p99>1s")
"""Unless asked for otherwise: a window that comes when the next one is due is late."""

EVERY_KIND = (
    "watch:82,slow:10,market:1,stalled:1,reconnecting:2,sse:2,polling:2"  # of a hundred
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load by name. Fields as on the command line (``docs/load.md``)."""

    words: str
    """What it is, for people."""
    rate: float = 900
    profile: str | None = None
    """In place of ``rate``, see ``ingest/profile.py``."""
    speed: float = 1
    """Of tapes; a scenario says nothing of which."""
    needs_tape: bool = False
    clients: int = 1_000
    keys: int = 30
    mix: str = "watch:1"
    seconds: float = 60
    warm_up_s: float = 30
    rules: tuple[str, ...] = LATE


SCENARIOS = {
    "standard": Scenario(
        "an ordinary day: 900 trades/s, 1,000 clients with 30 issues each, 10 minutes",
        seconds=600,
        rules=("lag.p99>1s", "feed.behind.p99>1s"),
    ),
    "short": Scenario(
        "a minute of an ordinary day with 500 clients of every kind",
        clients=500,
        mix=EVERY_KIND,
    ),
    "opening": Scenario(
        "the opening bell: a spike that decays within five minutes, 1,000 clients",
        profile="opening(900):300s",
        seconds=300,
    ),
    "bursts": Scenario(
        "1,700 trades within 100 ms, every 10 s, on top of 900 trades/s",
        profile="900:120s,1700/100ms@10s",
        seconds=120,
    ),
    "stress": Scenario(
        "tapes at 20 times their speed, 5,000 clients of every kind, a tenth slow",
        speed=20,
        needs_tape=True,
        clients=5_000,
        mix=EVERY_KIND,
        seconds=600,
        warm_up_s=60,
    ),
}
