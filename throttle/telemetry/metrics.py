"""What the job does, as Prometheus metrics. Made in the driver and nowhere else.

Spark's workers inherit the environment, so nothing that they import may make any.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ingest.process.prometheus import ProcessMetrics
from ingest.trade import REASONS
from throttle.telemetry.batch_report import SPARK_STAGES, BatchReport
from throttle.window.decoder import MOST_NAMES, OTHER

OUTCOMES = ("published", "superseded", "stale", "not_last", "refused")
OWN_STAGES = ("plan", "read", "collect", "assemble", "publish")

Server = Literal["redis", "trade_log"]

_LAG_BUCKETS = (
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_STAGE_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ThrottleMetrics:
    """The metrics of one job."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessMetrics(registry, "throttle")
        self._registry = registry
        self._create_counters()
        self._create_times()
        self._create_states()

    def _create_counters(self) -> None:
        registry = self._registry
        trades = Counter(
            "tickthrottle_throttle_trades_total",
            "Trades read, by what became of them.",
            ["outcome"],
            registry=registry,
        )
        self._trades = {outcome: trades.labels(outcome) for outcome in OUTCOMES}
        refused = Counter(
            "tickthrottle_throttle_refused_trades_total",
            "Trades refused, by reason.",
            ["reason"],
            registry=registry,
        )
        # From the start: what appears with its first trade has not grown.
        self._refused = {reason: refused.labels(reason) for reason in REASONS}
        self._names: set[str] = {OTHER}
        self._skipped = Counter(
            "tickthrottle_throttle_skipped_entries_total",
            "Entries of the log that are no trades, by the decoder's name for them.",
            ["name"],
            registry=registry,
        )
        # From the start: what appears with its first entry has not grown.
        self._skipped.labels(OTHER)
        self._unkept = Counter(
            "tickthrottle_throttle_unkept_letters_total",
            "Trades refused of which no dead letter was kept.",
            registry=registry,
        )
        self._unknown = Counter(
            "tickthrottle_throttle_unknown_instrument_trades_total",
            "Trades of instruments that the table does not have; they are published.",
            registry=registry,
        )
        self._taken_back = Counter(
            "tickthrottle_throttle_taken_back_trades_total",
            "Trades that later entries of the log took back.",
            registry=registry,
        )
        self._unknown_targets = Counter(
            "tickthrottle_throttle_unknown_targets_total",
            "Entries that take back a trade that was not found.",
            registry=registry,
        )
        self._windows = Counter(
            "tickthrottle_throttle_windows_total",
            "Windows published.",
            registry=registry,
        )
        self._batches = Counter(
            "tickthrottle_throttle_batches_total",
            "Batches published; one may hold several windows.",
            registry=registry,
        )
        self._repeated = Counter(
            "tickthrottle_throttle_repeated_batches_total",
            "Batches that turned out to be published already; counted nowhere else.",
            registry=registry,
        )
        self._fenced = Counter(
            "tickthrottle_throttle_fenced_total",
            "Times this job found that another one of its name had taken over.",
            registry=registry,
        )
        outages = Counter(
            "tickthrottle_throttle_outages_total",
            "Times a server was away.",
            ["server"],
            registry=registry,
        )
        self._outages = {s: outages.labels(s) for s in ("redis", "trade_log")}

    def _create_times(self) -> None:
        registry = self._registry
        self._publish_lag = Histogram(
            "tickthrottle_throttle_publish_lag_seconds",
            "Time from a window's end to its publish, once per window.",
            registry=registry,
            buckets=_LAG_BUCKETS,
        )
        stages = Histogram(
            "tickthrottle_throttle_stage_seconds",
            "Where the time of a batch went.",
            ["stage"],
            registry=registry,
            buckets=_STAGE_BUCKETS,
        )
        names = (*OWN_STAGES, *SPARK_STAGES.values())
        self._stages = {stage: stages.labels(stage) for stage in names}
        self._window_end = Gauge(
            "tickthrottle_throttle_window_end_timestamp_seconds",
            "End of the newest window published, 0 before the first.",
            registry=registry,
            multiprocess_mode="max",
        )

    def _create_states(self) -> None:
        registry = self._registry
        self._off_by = Gauge(
            "tickthrottle_throttle_ledger_off_by_trades",
            "Trades by which the ledger does not balance.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._lease_held = Gauge(
            "tickthrottle_throttle_lease_held",
            "1 while the job holds its lease and publishes, 0 while it stands by.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._lag = Gauge(
            "tickthrottle_throttle_lag_trades",
            "Trades in the log behind the newest published window.",
            ["partition"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        away = Gauge(
            "tickthrottle_throttle_server_away",
            "1 while a server does not answer the job.",
            ["server"],
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._away = {server: away.labels(server) for server in self._outages}
        for gauge in (self._off_by, self._lease_held, *self._away.values()):
            gauge.set(0)

    def published(self, report: BatchReport) -> None:
        """Take in a batch."""
        if not report.published.windows:
            self._repeated.inc()
            return
        counts = report.counts
        self._trades["published"].inc(report.published.rows)
        self._trades["stale"].inc(report.published.stale)
        for count in counts:
            self._trades["superseded"].inc(count.superseded)
            self._trades["not_last"].inc(count.not_last)
            self._trades["refused"].inc(count.refused.total())
            self._unkept.inc(count.unkept)
            self._unknown.inc(count.unknown_instrument)
            self._taken_back.inc(count.taken_back)
            self._unknown_targets.inc(count.unknown_target)
            for reason, trades in count.refused.items():
                self._refused[reason].inc(trades)
            for name, entries in count.skipped.items():
                # Names are a decoder's own words, and may be any number.
                if len(self._names) <= MOST_NAMES:
                    self._names.add(name)
                known = name if name in self._names else OTHER
                self._skipped.labels(known).inc(entries)
        self._batches.inc()
        self._windows.inc(report.published.windows)
        for window in report.batch.windows:
            self._publish_lag.observe(report.published_s - window.end_ms / 1000)
        self._window_end.set(report.batch.end.end_ms / 1000)
        self._off_by.set(report.published.off_by)
        self.spent(report.stages_s)

    def spent(self, stages_s: Mapping[str, float]) -> None:
        """Take in where the time of a batch went."""
        for stage, seconds in stages_s.items():
            self._stages[stage].observe(seconds)

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Say that the job holds its lease while the block runs."""
        self._lease_held.set(1)
        try:
            yield
        finally:
            self._lease_held.set(0)

    def fenced(self) -> None:
        """Take in that another job has taken over."""
        self._fenced.inc()

    def server_away(self, server: Server, is_away: bool) -> None:
        """Take in that a server has gone away or come back."""
        if is_away:
            self._outages[server].inc()
        self._away[server].set(is_away)

    def waiting(self, lags: Iterable[tuple[int, int]]) -> None:
        """Take in how many trades wait in each partition."""
        for partition, trades in lags:
            self._lag.labels(str(partition)).set(trades)
