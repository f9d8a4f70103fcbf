"""What the gateway counts and sees, as Prometheus metrics.

Nothing of it is in the way of a frame: counters stay plain numbers, and are told here
a few times a second.
"""

import asyncio
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.health.client_census import take_census
from gateway.health.client_states import STATES
from gateway.health.finding_codes import CODES
from gateway.health.findings import Finding
from gateway.health.jobs import PipelineState
from gateway.health.readiness import REASONS, Reason
from gateway.settings import GatewaySettings
from gateway.stream.close_log import CloseLog
from gateway.stream.counters import Counters
from gateway.stream.hub import Hub
from gateway.stream.window_timings import WindowTiming, WindowTimings
from gateway.upstream.stream_follower import StreamFollower
from ingest.market_hours.hours import MarketState
from ingest.process.prometheus import (
    LabelledTotals,
    ProcessMetrics,
    Total,
    forget_process,
    render,
)

log = structlog.get_logger()

PREFIX = "tickthrottle_gateway_"

COUNT_S = 0.5
"""How often the metrics are brought up to date."""

CENSUS_EVERY = 4
"""Clients are counted by state once in this many times."""

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
    "upstream_levels": (
        "Gateways between this one and Redis: 0 if it follows Redis, or has no line."
    ),
    "upstream_behind_windows": (
        "Windows that the gateway that is followed has, and this one lacks."
    ),
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
        closes = Counter(
            f"{PREFIX}closes_total",
            "Streams that ended, by who ended them and the close code.",
            ["by", "code"],
            registry=registry,
        )
        self._closes = LabelledTotals(closes)
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
        self._closes.reach(close_log.counts)
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


class Exporter:
    """The metrics of one gateway, or with a shared folder of all processes in it.

    ``name`` is what the folder's files of this process have in their names.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        hub: Hub,
        feed: StreamFollower,
        reasons: Callable[[], Sequence[Reason]],
        markets: Callable[[], Sequence[MarketState]],
        name: str,
    ) -> None:
        self._name = name
        self._shared = settings.metrics_dir
        self._hub = hub
        self._feed = feed
        self._reasons = reasons
        self._markets = markets
        self.firehose_viewers: Callable[[], int] = lambda: 0
        """How many look at the firehose; whoever has it says so."""
        self.pipeline: PipelineState | None = None
        self.findings: Sequence[Finding] = ()
        """What was wrong when somebody looked last."""
        self._is_failing = False
        self._registry = CollectorRegistry()
        self._metrics = GatewayMetrics(self._registry)
        self.loop_was_late = self._metrics.loop_was_late

    async def run(self) -> None:
        """Keep the metrics up to date until cancelled; then take leave."""
        # Whoever shares the folder shows them too: not only when we are asked.
        try:
            for number in itertools.count():
                if number % CENSUS_EVERY == 0:
                    await self._take_census()
                self._renew()
                await asyncio.sleep(COUNT_S)
        finally:
            self._renew()
            forget_process(self._name, self._shared)

    async def render(self) -> tuple[bytes, str]:
        """Return the metrics as Prometheus reads them, and their content type."""
        self._renew()
        # Some milliseconds: not the event loop's.
        return await asyncio.to_thread(render, self._registry, self._shared)

    async def _take_census(self) -> None:
        hub = self._hub
        census = await take_census(hub.clients())
        self._metrics.show_each("clients", census.states)
        self._metrics.show(
            instruments_listed=len(hub.instruments),
            instruments_unlisted=len(hub.board.unlisted(hub.instruments)),
        )

    def _renew(self) -> None:
        try:
            self._take_in()
        except OSError as error:
            # A folder without room: prices still go out, the numbers stand still.
            if not self._is_failing:
                log.warning("the metrics cannot be kept", error=str(error))
            self._is_failing = True

    def _take_in(self) -> None:
        metrics, hub, pipeline = self._metrics, self._hub, self.pipeline
        board, codes = hub.board, {finding.code for finding in self.findings}
        metrics.count(hub.counters, hub.close_log)
        metrics.windows_went_out(hub.timings)
        metrics.judged(self._reasons())
        metrics.markets(self._markets())
        metrics.show_each("finding", {code: code in codes for code in CODES})
        metrics.show(
            firehose_viewers=self.firehose_viewers(),
            newest_window_timestamp_seconds=(board.position.window or 0) / 1_000,
            last_trade_timestamp_seconds=(
                time.time() - self._feed.quiet_s(time.monotonic())
            ),
            window_length_seconds=board.window_ms / 1_000,
            instruments=len(board),
            groups=len(board.groups),
        )
        if pipeline is not None and (upstream := pipeline.upstream) is not None:
            metrics.show(
                upstream_levels=upstream.levels, upstream_behind_windows=upstream.behind
            )
        if pipeline is not None and pipeline.memory is not None:
            metrics.show(
                redis_used_memory_bytes=pipeline.memory.used_bytes,
                redis_max_memory_bytes=pipeline.memory.max_bytes,
            )
        if pipeline is not None and pipeline.log.partitions is not None:
            ends = pipeline.log.partitions.values()
            metrics.show(log_trades=sum(end.left or 0 for end in ends))
