"""What the gateway counts and sees, as Prometheus metrics.

Nothing of it is in the way of a frame: counters stay plain numbers, and are told here
a few times a second.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.health.client_states import STATES
from gateway.health.finding_codes import CODES
from gateway.health.readiness import REASONS, Reason
from gateway.stream.close_log import CloseLog
from gateway.stream.counters import Counters
from gateway.stream.window_timings import WindowTiming, WindowTimings
from ingest.market_hours.hours import MarketState
from ingest.process.prometheus import ProcessMetrics, Total

PREFIX = "tickthrottle_gateway_"

_LAG_BUCKETS = (
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_LOOP_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)

HISTOGRAMS = {
    "publish_lag_seconds": (
        "Time from a window's end to its publish, as the gateway was told.",
        _LAG_BUCKETS,
    ),
    "fanout_lag_seconds": (
        "Time from a window's end until the last client was served, per window.",
        _LAG_BUCKETS,
    ),
    "loop_lag_seconds": (
        "How late the event loop was, ten samples a second.",
        _LOOP_BUCKETS,
    ),
}

GAUGES = {
    "ready": "1 while the gateway is ready, 0 otherwise; of several the worst.",
    "firehose_viewers": "Viewers of the firehose.",
    "redis_used_memory_bytes": "Memory that Redis uses.",
    "redis_max_memory_bytes": "Memory that Redis may use, 0 without a limit.",
    "log_trades": "Entries that the trade log in Redis holds.",
    "newest_window_timestamp_seconds": (
        "End of the newest window the gateway has, 0 before the first."
    ),
    "last_trade_timestamp_seconds": (
        "When the last window with a trade came; before the first, the start."
    ),
    "window_length_seconds": "Length of a window.",
    "instruments": "Instruments that have a last value.",
    "groups": "Markets and sectors that have figures.",
    "instruments_listed": "Instruments of the instrument table.",
    "instruments_unlisted": (
        "Instruments with a last value that the instrument table lacks."
    ),
}

LABELLED: dict[str, tuple[str, str, Sequence[str]]] = {
    "clients": ("Clients that are connected, by state.", "state", STATES),
    "not_ready": (
        "1 for every reason for which a gateway is not ready.",
        "reason",
        REASONS,
    ),
    "market_open": (
        "1 while a market trades, by its hours, 0 otherwise.",
        "market",
        (),
    ),
    "finding": ("1 for everything that is found to be wrong.", "code", tuple(CODES)),
}
"""Gauges with a label, and its values that are there from the start."""

MODES: dict[str, Literal["livemax", "livemin", "livesum"]] = {
    "clients": "livesum",
    "firehose_viewers": "livesum",
    "ready": "livemin",
}
"""What several processes that share a folder show together, if not the greatest."""


class GatewayMetrics:
    """The metrics of one gateway process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._process = ProcessMetrics(registry, "gateway")
        self._seen: WindowTiming | None = None
        # Every counter there is: a new one cannot be forgotten.
        self._totals = {
            field.name: Total(
                Counter(
                    f"{PREFIX}{field.name}_total",
                    f"The counter {field.name}, see docs/observing.md.",
                    registry=registry,
                )
            )
            for field in fields(Counters)
        }
        self._closes = Counter(
            f"{PREFIX}closes_total",
            "Streams that ended, by who ended them and the close code.",
            ["by", "code"],
            registry=registry,
        )
        self._closed: dict[tuple[str, str], Total] = {}
        self._lags = {
            name: Histogram(PREFIX + name, text, registry=registry, buckets=buckets)
            for name, (text, buckets) in HISTOGRAMS.items()
        }

        def gauge(name: str, text: str, *labels: str) -> Gauge:
            mode = MODES.get(name, "livemax")
            return Gauge(
                PREFIX + name, text, labels, registry=registry, multiprocess_mode=mode
            )

        self._gauges = {name: gauge(name, text) for name, text in GAUGES.items()}
        for name, (text, label, values) in LABELLED.items():
            self._gauges[name] = gauge(name, text, label)
            self.show_each(name, dict.fromkeys(values, 0))

    def show(self, **values: float) -> None:
        """Take in the values of gauges, by their names."""
        for name, value in values.items():
            self._gauges[name].set(value)

    def show_each(self, name: str, values: Mapping[Any, float]) -> None:
        """Take in the values of a gauge by its label."""
        for label, value in values.items():
            self._gauges[name].labels(label).set(value)

    def loop_was_late(self, lag_s: float) -> None:
        """Take in a sample of the event loop's lag."""
        self._lags["loop_lag_seconds"].observe(lag_s)

    def count(self, counters: Counters, close_log: CloseLog) -> None:
        """Take in how far the counters have come."""
        for name, total in self._totals.items():
            total.reach(getattr(counters, name))
        for (by, code), count in close_log.counts.items():
            if (by, code) not in self._closed:
                self._closed[by, code] = Total(self._closes.labels(by, code))
            self._closed[by, code].reach(count)
        self._process.observe()

    def windows_went_out(self, timings: WindowTimings) -> None:
        """Take in the windows that went out since the last time, each once."""
        for timing in timings.after(self._seen):
            if timing.fanout_lag_ms is None:
                return
            self._seen = timing
            publish_s = timing.publish_lag_ms / 1_000
            self._lags["publish_lag_seconds"].observe(publish_s)
            if timing.clients:
                fanout_s = timing.fanout_lag_ms / 1_000
                self._lags["fanout_lag_seconds"].observe(fanout_s)

    def judged(self, reasons: Sequence[Reason]) -> None:
        """Take in why the gateway is not ready; no reason is good."""
        codes = {reason.code for reason in reasons}
        self.show(ready=not codes)
        self.show_each("not_ready", {code: code in codes for code in REASONS})

    def markets(self, states: Sequence[MarketState]) -> None:
        """Take in which markets are open."""
        self.show_each("market_open", {s.market: s.is_open for s in states})
