"""What the analytics job does, as Prometheus metrics; made in the driver only."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge

from ingest.process.prometheus import ProcessMetrics
from ingest.redis_keys import PRODUCTS
from throttle.contract.tally import BatchNote

OUTCOMES = ("counted", "too_late", "refused", "skipped", "missed")


class AnalyticsMetrics:
    """The metrics of the job, each by product."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessMetrics(registry, "analytics")
        self._trades = Counter(
            "tickthrottle_analytics_trades_total",
            "Trades read, by what became of them; missed ones had left the log.",
            ["product", "outcome"],
            registry=registry,
        )
        self._taken_back = Counter(
            "tickthrottle_analytics_taken_back_trades_total",
            "Counted trades that left their windows again: they were taken back.",
            ["product"],
            registry=registry,
        )
        self._not_taken_back = Counter(
            "tickthrottle_analytics_not_taken_back_total",
            "Entries that take back what was not found, or what stays for good.",
            ["product"],
            registry=registry,
        )
        for product in PRODUCTS:
            for outcome in OUTCOMES:
                self._trades.labels(product, outcome)
            self._taken_back.labels(product)
            self._not_taken_back.labels(product)
        self._batches = Counter(
            "tickthrottle_analytics_batches_total",
            "Batches published.",
            ["product"],
            registry=registry,
        )
        self._clock = self._gauge(
            registry,
            "clock_timestamp_seconds",
            "How far the log's clock has come by the newest batch published.",
        )
        self._off_by = self._gauge(
            registry, "off_by_trades", "Trades read that no book accounts for."
        )
        self._rows = self._gauge(
            registry, "state_rows", "Rows that Spark's state store holds."
        )
        self._bytes = self._gauge(
            registry, "state_bytes", "Memory that Spark's state store uses."
        )
        self._commit = self._gauge(
            registry,
            "state_commit_seconds",
            "Time to commit the state of the newest batch.",
        )
        self._dropped = self._gauge(
            registry,
            "state_dropped_rows",
            "Rows of the newest batch that Spark's watermark dropped: 0, always.",
        )
        self._kept = Counter(
            "tickthrottle_analytics_kept_bars_total",
            "Bars that came in a lesser edition than was known of them, and were not "
            "published: their log no longer held all of them.",
            registry=registry,
        )

    @staticmethod
    def _gauge(registry: CollectorRegistry, name: str, words: str) -> Gauge:
        return Gauge(
            f"tickthrottle_analytics_{name}",
            words,
            ["product"],
            registry=registry,
            multiprocess_mode="livemax",
        )

    def published(self, product: str, note: BatchNote, kept: int = 0) -> None:
        """Take in what a batch has read.

        ``kept`` bars were not published: newer ones are stored.
        """
        for tally in note.tallies.values():
            outcomes = {
                "counted": tally.counted,
                "too_late": tally.too_late,
                "refused": tally.refused.total(),
                "skipped": tally.skipped.total(),
                "missed": tally.missed,
            }
            for outcome, trades in outcomes.items():
                self._trades.labels(product, outcome).inc(trades)
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
