"""Loads with a name; what the command line says wins over them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cli.commands.load_choices import EVERY_KIND


@dataclass(frozen=True, slots=True)
class Scenario:
    """A load by name: what it asks for where it is not the default of every load."""

    words: str
    """What it is, for people."""
    asks: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ``LoadChoices``."""
    needs_tape: bool = False
    deployment: Mapping[str, Any] = field(default_factory=dict)
    """How the deployment is started: arguments of ``local``."""


FULL_SOON = {
    "TRADE_LOG_RETENTION_S": 30,
    "WINDOW_LOG": 45,
    # What charts are drawn from.
    "HISTORY_BYTES": 2**20,
    "BARS_KEPT": 5,
    "LATENESS_S": 60,
    "MOVERS_SPAN_S": 60,
    # RocksDB, all states of a job together.
    "SPARK_CONF": '{"spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "16"}',
}
"""Settings of all that fills up in memory, far below what they are by default."""


SCENARIOS = {
    "standard": Scenario(
        "an ordinary day: 900 trades/s, 1,000 clients of 30 instruments, 10 minutes",
        {
            "clients": 1_000,
            "mix": "watch:1",
            "seconds": 600,
            "rules": ("lag.p99>1s", "feed.behind.p99>1s"),
        },
    ),
    "short": Scenario("a minute of an ordinary day with 500 clients of every kind"),
    "opening": Scenario(
        "the opening bell: a spike that decays within five minutes, 1,000 clients",
        {"clients": 1_000, "mix": "watch:1", "profile": "opening(900):300s"},
    ),
    "bursts": Scenario(
        "1,700 trades within 100 ms, every 10 s, on top of 900 trades/s",
        {"clients": 1_000, "mix": "watch:1", "profile": "900:120s,1700/100ms@10s"},
    ),
    "stress": Scenario(
        "tapes at 20 times their speed, 5,000 clients of every kind, a tenth slow",
        {
            "speed": 20,
            "clients": 5_000,
            "mix": EVERY_KIND,
            "seconds": 600,
            "warm_up_s": 60,
        },
        needs_tape=True,
    ),
    "refused": Scenario(
        "40,000 trades/s of which nearly all are refused, 100 clients, 3 minutes",
        {
            "rate": 40_000,
            "malformed": 0.95,
            "clients": 100,
            "mix": "watch:1",
            "seconds": 180,
            "rules": tuple(
                f"memory.throttle-{part}.growth>10%"
                for part in ("driver", "jvm", "worker")
            ),
        },
    ),
    "soak": Scenario(
        "all parts, archive and analytics too, for 20 minutes: does anything grow?",
        {
            "mix": EVERY_KIND,
            "seconds": 1_200,
            # How late a window is, is not the question.
            "rules": tuple(
                f"memory.{part}.climb>0.5MiB"
                for part in (
                    *("valkey", "gateway", "archive"),
                    *(f"throttle-{part}" for part in ("driver", "jvm", "worker")),
                    *(f"analytics-{part}" for part in ("driver", "jvm", "worker")),
                )
            ),
        },
        deployment={
            "settings": {f"TICKTHROTTLE_{n}": str(v) for n, v in FULL_SOON.items()},
            "archive": True,
            "analytics": "bars,movers",
        },
    ),
}
