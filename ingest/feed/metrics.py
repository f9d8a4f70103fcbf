"""What a feed counts, as Prometheus metrics."""

from collections import Counter as Counts
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge

from ingest.feed.pacer import FeedProgress
from ingest.process.prometheus import LabelledTotals, ProcessMetrics, Total
from ingest.sources.event import Refusals
from ingest.trade import REASONS
from ingest.tradelog.contract import LogWriter


class FeedMetrics:
    """The metrics of one feed, renewed whenever it shows its progress."""

    def __init__(self, registry: CollectorRegistry) -> None:
        counter = partial(Counter, registry=registry)
        gauge = partial(Gauge, registry=registry)
        self._process = ProcessMetrics(registry, "feed")
        self._acknowledged = Total(
            counter(
                "tickthrottle_feed_acknowledged_trades_total",
                "Trades the log's server has confirmed.",
            )
        )
        refused = counter(
            "tickthrottle_feed_refused_trades_total",
            "Lines of a source that were no trades, and trades the log cannot take.",
            ["reason"],
        )
        # From the start: what appears with its first trade has not grown.
        self._refused = LabelledTotals(refused, REASONS)
        left_out = counter(
            "tickthrottle_feed_left_out_trades_total",
            "Lines of a source that were left out on purpose.",
            ["condition"],
        )
        self._left_out = LabelledTotals(left_out)
        unknown = counter(
            "tickthrottle_feed_unknown_conditions_total",
            "Sale conditions of trades that no table has.",
            ["condition"],
        )
        self._unknown = LabelledTotals(unknown)
        self._retried = Total(
            counter(
                "tickthrottle_feed_retried_trades_total",
                "Trades of appends that failed and were tried again.",
            )
        )
        dropped = counter(
            "tickthrottle_feed_dropped_trades_total",
            "Trades dropped from the log's beginning, not yet read perhaps.",
            ["reason"],
        )
        self._dropped = Total(dropped.labels("log_cap"))
        self._in_doubt = gauge(
            "tickthrottle_feed_in_doubt_trades",
            "Trades that may be in the log beyond the acknowledged ones.",
            multiprocess_mode="sum",
        )
        self._lag = gauge(
            "tickthrottle_feed_schedule_lag_seconds",
            "How far the feed is behind its schedule.",
            multiprocess_mode="livemax",
        )
        self._cap = gauge(
            "tickthrottle_feed_log_cap_trades",
            "Entries that the log in Redis may hold, 0 where it is not there.",
            multiprocess_mode="livemax",
        )
        self._last_append = gauge(
            "tickthrottle_feed_last_append_timestamp_seconds",
            "When the log's server last confirmed a trade, 0 if it never did.",
            multiprocess_mode="max",
        )
        self._seen = 0

    def capped_at(self, entries: int) -> None:
        """Take in how many entries the log may hold."""
        self._cap.set(entries)

    def show(
        self,
        progress: FeedProgress,
        refusals: Refusals,
        writer: LogWriter,
        now_s: float,
    ) -> None:
        """Take in how the feed is doing. ``now_s`` is the time of day."""
        if progress.acknowledged > self._seen:
            self._seen = progress.acknowledged
            self._last_append.set(now_s)
        self._acknowledged.reach(progress.acknowledged)
        self._refused.reach(refusals.by_reason() + Counts(writer.refused))
        self.count_conditions(refusals)
        self._retried.reach(progress.retried)
        self._dropped.reach(progress.dropped_at_cap)
        self._in_doubt.set(sum(tally.in_doubt for tally in writer.tallies))
        self._lag.set(progress.lag_s)
        self._process.observe()

    def count_conditions(self, refusals: Refusals) -> None:
        """Take in how many rows met a condition, or had one that is unknown."""
        self._left_out.reach(refusals.left_out.copy())
        self._unknown.reach(refusals.unknown_conditions.copy())
