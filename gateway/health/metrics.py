"""What the gateway counts and sees, as Prometheus metrics.

Nothing of it is in the way of a frame: counters stay plain numbers, and are told here
a few times a second.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from gateway.health.client_states import STATES, State
from gateway.health.finding_codes import CODES
from gateway.health.jobs import PipelineState
from gateway.health.readiness import REASONS, Reason
from gateway.stream.close_log import CloseLog
from gateway.stream.counters import Counters
from gateway.stream.window_timings import WindowTiming, WindowTimings
from ingest.market_hours.hours import MarketState
from ingest.process.prometheus import ProcessMetrics, Total

PREFIX = "tickthrottle_gateway_"

GaugeMode = Literal["livemax", "livemin", "livesum"]
"""What several processes that share a folder show together."""

_LAG_BUCKETS = (
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_LOOP_BUCKETS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)


class GatewayMetrics:
    """The metrics of one gateway process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._process = ProcessMetrics(registry, "gateway")
        self._registry = registry
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
        self._create_lags()
        self._create_states()
        self._create_times()
        self._create_surroundings()

    def _create_lags(self) -> None:
        self._publish_lag = self._histogram(
            "publish_lag_seconds",
            "Time from a window's end to its publish, as the gateway was told.",
            _LAG_BUCKETS,
        )
        self._fanout_lag = self._histogram(
            "fanout_lag_seconds",
            "Time from a window's end until the last client was served, per window.",
            _LAG_BUCKETS,
        )
        self._loop_lag = self._histogram(
            "loop_lag_seconds",
            "How late the event loop was, ten samples a second.",
            _LOOP_BUCKETS,
        )

    def _create_states(self) -> None:
        clients = self._gauge(
            "clients", "Clients that are connected, by state.", "state", mode="livesum"
        )
        self._clients = {state: clients.labels(state) for state in STATES}
        self._ready = self._gauge(
            "ready",
            "1 while the gateway is ready, 0 otherwise; of several the worst.",
            mode="livemin",
        )
        not_ready = self._gauge(
            "not_ready",
            "1 for every reason for which a gateway is not ready.",
            "reason",
        )
        self._not_ready = {code: not_ready.labels(code) for code in REASONS}
        self._firehose_viewers = self._gauge(
            "firehose_viewers", "Viewers of the firehose.", mode="livesum"
        )

    def _create_surroundings(self) -> None:
        self._market_open = self._gauge(
            "market_open",
            "1 while a market trades, by its hours, 0 otherwise.",
            "market",
        )
        findings = self._gauge(
            "finding", "1 for everything that is found to be wrong.", "code"
        )
        self._findings = {code: findings.labels(code) for code in CODES}
        self._redis_used = self._gauge(
            "redis_used_memory_bytes", "Memory that Redis uses."
        )
        self._redis_most = self._gauge(
            "redis_max_memory_bytes", "Memory that Redis may use, 0 without a limit."
        )
        self._log_trades = self._gauge(
            "log_trades", "Entries that the trade log in Redis holds."
        )

    def _create_times(self) -> None:
        self._newest_window = self._gauge(
            "newest_window_timestamp_seconds",
            "End of the newest window the gateway has, 0 before the first.",
        )
        self._last_trade = self._gauge(
            "last_trade_timestamp_seconds",
            "When the last window with a trade came; before the first, the start.",
        )
        self._window_length = self._gauge(
            "window_length_seconds", "Length of a window."
        )
        self._instruments = self._gauge(
            "instruments", "Instruments that have a last value."
        )
        self._groups = self._gauge("groups", "Markets and sectors that have figures.")
        self._listed = self._gauge(
            "instruments_listed", "Instruments of the instrument table."
        )
        self._unlisted = self._gauge(
            "instruments_unlisted",
            "Instruments with a last value that the instrument table lacks.",
        )

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(PREFIX + name, text, registry=self._registry, buckets=buckets)

    def _gauge(
        self, name: str, text: str, *labels: str, mode: GaugeMode = "livemax"
    ) -> Gauge:
        registry = self._registry
        return Gauge(
            PREFIX + name, text, labels, registry=registry, multiprocess_mode=mode
        )

    def loop_was_late(self, lag_s: float) -> None:
        """Take in a sample of the event loop's lag."""
        self._loop_lag.observe(lag_s)

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
            self._publish_lag.observe(timing.publish_lag_ms / 1_000)
            if timing.clients:
                self._fanout_lag.observe(timing.fanout_lag_ms / 1_000)

    def clients(self, states: Mapping[State, int]) -> None:
        """Take in how many clients there are of each state."""
        for state, gauge in self._clients.items():
            gauge.set(states[state])

    def watched(self, viewers: int) -> None:
        """Take in how many look at the firehose."""
        self._firehose_viewers.set(viewers)

    def judged(self, reasons: Sequence[Reason]) -> None:
        """Take in why the gateway is not ready; no reason is good."""
        codes = {reason.code for reason in reasons}
        self._ready.set(not codes)
        for code, gauge in self._not_ready.items():
            gauge.set(code in codes)

    def markets(self, states: Sequence[MarketState]) -> None:
        """Take in which markets are open."""
        for state in states:
            self._market_open.labels(state.market).set(state.is_open)

    def found(self, codes: Collection[str]) -> None:
        """Take in everything that is wrong, by its code."""
        for code, gauge in self._findings.items():
            gauge.set(code in codes)

    def pipeline(self, pipeline: PipelineState) -> None:
        """Take in how full Redis is, and the trade log in it."""
        if pipeline.memory is not None:
            self._redis_used.set(pipeline.memory.used_bytes)
            self._redis_most.set(pipeline.memory.max_bytes)
        if pipeline.log.partitions is not None:
            ends = pipeline.log.partitions.values()
            self._log_trades.set(sum(end.left or 0 for end in ends))

    def listed(self, instruments: int, unlisted: int) -> None:
        """Take in how many instruments the table has, and how many it lacks."""
        self._listed.set(instruments)
        self._unlisted.set(unlisted)

    def stands(
        self,
        window_ms: int | None,
        traded_s: float,
        length_ms: int,
        instruments: int,
        groups: int,
    ) -> None:
        """Take in what the board holds; ``traded_s`` is the last trade's time of day.

        ``window_ms`` is the newest window's end.
        """
        self._newest_window.set((window_ms or 0) / 1_000)
        self._last_trade.set(traded_s)
        self._window_length.set(length_ms / 1_000)
        self._instruments.set(instruments)
        self._groups.set(groups)
