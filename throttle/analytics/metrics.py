"""What the analytics job does, as Prometheus metrics; made in the driver only."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from ingest.process.prometheus import ProcessMetrics
from ingest.redis_keys import PRODUCTS
from throttle.contract.tally import BY_NAME, BatchNote

OUTCOMES = ("counted", "too_late", "refused", "skipped", "missed")


class AnalyticsMetrics:
    """The metrics of the job, each by product."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessMetrics(registry, "analytics")
        # All names begin so: tickthrottle_analytics_.
        own: dict[str, Any] = {"namespace": "tickthrottle", "subsystem": "analytics"}
        counter: Callable[..., Counter] = partial(Counter, registry=registry, **own)
        gauge: Callable[..., Gauge] = partial(
            Gauge,
            labelnames=["product"],
            registry=registry,
            multiprocess_mode="livemax",
            **own,
        )
        self._trades = counter(
            "trades",
            "Trades read, by what became of them; missed ones had left the log.",
            ["product", "outcome"],
        )
        self._taken_back = counter(
            "taken_back_trades",
            "Counted trades that left their windows again: they were taken back.",
            ["product"],
        )
        self._not_taken_back = counter(
            "not_taken_back",
            "Entries that take back what was not found, or what stays for good.",
            ["product"],
        )
        for product in PRODUCTS:
            for outcome in OUTCOMES:
                self._trades.labels(product, outcome)
            self._taken_back.labels(product)
            self._not_taken_back.labels(product)
        self._batches = counter("batches", "Batches published.", ["product"])
        self._clock = gauge(
            "clock_timestamp_seconds",
            "How far the log's clock has come by the newest batch published.",
        )
        self._off_by = gauge("off_by_trades", "Trades read that no book accounts for.")
        self._rows = gauge("state_rows", "Rows that Spark's state store holds.")
        self._bytes = gauge("state_bytes", "Memory that Spark's state store uses.")
        self._commit = gauge(
            "state_commit_seconds", "Time to commit the state of the newest batch."
        )
        self._dropped = gauge(
            "state_dropped_rows",
            "Rows of the newest batch that Spark's watermark dropped: 0, always.",
        )
        self._kept = counter(
            "kept_bars",
            "Bars that came in a lesser edition than was known of them, and were not "
            "published: their log no longer held all of them.",
        )

    def published(self, product: str, note: BatchNote, kept: int = 0) -> None:
        """Take in what a batch has read; newer bars than ``kept`` ones are stored."""
        for tally in note.tallies.values():
            for outcome in OUTCOMES:
                trades = getattr(tally, outcome)
                number = trades.total() if outcome in BY_NAME else trades
                self._trades.labels(product, outcome).inc(number)
            self._taken_back.labels(product).inc(tally.taken_back)
            self._not_taken_back.labels(product).inc(tally.not_taken_back)
        off_by = sum(abs(tally.unaccounted) for tally in note.tallies.values())
        self._off_by.labels(product).set(off_by)
        self._batches.labels(product).inc()
        self._kept.inc(kept)
        self._clock.labels(product).set(note.end.end_ms / 1000)

    def state(self, product: str, operator: Mapping[str, Any]) -> None:
        """Take in what Spark says of a query's state (``stateOperators``)."""
        self._rows.labels(product).set(operator["numRowsTotal"])
        self._bytes.labels(product).set(operator["memoryUsedBytes"])
        self._commit.labels(product).set(operator["commitTimeMs"] / 1000)
        self._dropped.labels(product).set(operator["numRowsDroppedByWatermark"])
