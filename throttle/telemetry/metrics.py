"""What the job does, as Prometheus metrics. Made in the driver and nowhere else.

Spark's workers inherit the environment, so nothing that they import may make any.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from ingest.process.prometheus import ProcessMetrics
from ingest.trade import REASONS
from throttle.publish.publisher import RefusalCause
from throttle.telemetry.batch_report import SPARK_STAGES, BatchReport
from throttle.window.decoder import MOST_NAMES, OTHER

OUTCOMES = ("published", "superseded", "stale", "not_last", "refused")
OWN_STAGES = ("plan", "read", "collect", "assemble", "publish")

Server = Literal["redis", "trade_log"]

# All names begin so: tickthrottle_throttle_.
_OWN: dict[str, Any] = {"namespace": "tickthrottle", "subsystem": "throttle"}

_LAG_BUCKETS = (
    *(0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.75),
    *(1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0, 300.0),
)
_STAGE_BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


class ThrottleMetrics:
    """The metrics of one job."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessMetrics(registry, "throttle")
        self._create_counters(partial(Counter, registry=registry, **_OWN))
        self._create_times(partial(Histogram, registry=registry, **_OWN))
        self._create_states(partial(Gauge, registry=registry, **_OWN))

    def _create_counters(self, counter: Callable[..., Counter]) -> None:
        trades = counter("trades", "Trades read, by what became of them.", ["outcome"])
        self._trades = {outcome: trades.labels(outcome) for outcome in OUTCOMES}
        refused = counter("refused_trades", "Trades refused, by reason.", ["reason"])
        # From the start: what appears with its first trade has not grown.
        self._refused = {reason: refused.labels(reason) for reason in REASONS}
        self._names: set[str] = {OTHER}
        self._skipped = counter(
            "skipped_entries",
            "Entries of the log that are no trades, by the decoder's name for them.",
            ["name"],
        )
        self._skipped.labels(OTHER)
        self._unkept = counter(
            "unkept_letters", "Trades refused of which no dead letter was kept."
        )
        self._unknown = counter(
            "unknown_instrument_trades",
            "Trades of instruments that the table does not have; they are published.",
        )
        self._taken_back = counter(
            "taken_back_trades", "Trades that later entries of the log took back."
        )
        self._unknown_targets = counter(
            "unknown_targets", "Entries that take back a trade that was not found."
        )
        self._windows = counter("windows", "Windows published.")
        self._batches = counter(
            "batches", "Batches published; one may hold several windows."
        )
        self._repeated = counter(
            "repeated_batches",
            "Batches that turned out to be published already; counted nowhere else.",
        )
        refusals = counter(
            "refused_batches",
            "Batches that were not published, and are read again.",
            ["cause"],
        )
        causes = get_args(RefusalCause)
        self._refusals = {cause: refusals.labels(cause) for cause in causes}
        self._fenced = counter(
            "fenced",
            "Times this job found that another one of its name had taken over.",
        )
        outages = counter("outages", "Times a server was away.", ["server"])
        self._outages = {s: outages.labels(s) for s in ("redis", "trade_log")}

    def _create_times(self, histogram: Callable[..., Histogram]) -> None:
        self._publish_lag = histogram(
            "publish_lag_seconds",
            "Time from a window's end to its publish, once per window.",
            buckets=_LAG_BUCKETS,
        )
        stages = histogram(
            "stage_seconds",
            "Where the time of a batch went.",
            ["stage"],
            buckets=_STAGE_BUCKETS,
        )
        names = (*OWN_STAGES, *SPARK_STAGES.values())
        self._stages = {stage: stages.labels(stage) for stage in names}

    def _create_states(self, gauge: Callable[..., Gauge]) -> None:
        self._window_end = gauge(
            "window_end_timestamp_seconds",
            "End of the newest window published, 0 before the first.",
            multiprocess_mode="max",
        )
        self._off_by = gauge(
            "ledger_off_by_trades",
            "Trades by which the ledger does not balance.",
            multiprocess_mode="livemax",
        )
        self._lease_held = gauge(
            "lease_held",
            "1 while the job holds its lease and publishes, 0 while it stands by.",
            multiprocess_mode="livesum",
        )
        self._lag = gauge(
            "lag_trades",
            "Trades in the log behind the newest published window.",
            ["partition"],
            multiprocess_mode="livemax",
        )
        away = gauge(
            "server_away",
            "1 while a server does not answer the job.",
            ["server"],
            multiprocess_mode="livemax",
        )
        self._away = {server: away.labels(server) for server in self._outages}
        for state in (self._off_by, self._lease_held, *self._away.values()):
            state.set(0)

    def published(self, report: BatchReport) -> None:
        """Take in a batch."""
        if not report.published.windows:
            self._repeated.inc()
            return
        self._trades["published"].inc(report.published.rows)
        self._trades["stale"].inc(report.published.stale)
        for count in report.counts:
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

    def refused(self, cause: RefusalCause) -> None:
        """Take in that a batch is read again."""
        self._refusals[cause].inc()

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
