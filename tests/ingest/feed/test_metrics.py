"""What a feed counts, told to Prometheus."""

import urllib.request
from threading import Event as Flag
from threading import Thread

import pytest
from prometheus_client import CollectorRegistry

from ingest.feed.metrics import FeedMetrics
from ingest.feed.pacer import FeedProgress
from ingest.feed.run import FeedError, run_simulator
from ingest.settings import IngestSettings
from ingest.sources.event import Refusals
from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import AppendTally
from tests.conftest import eventually
from tests.ports import free_port


class Writer:
    """A log that says what it was told to say."""

    def __init__(self) -> None:
        self.dropped_at_cap = 2
        self.refused = {"too_large_for_log": 3}
        self.tallies = [AppendTally(in_doubt=4), AppendTally(in_doubt=1)]

    def append(self, entries: object) -> int:
        """Take nothing."""
        return 0

    def abandon(self) -> None:
        """Have nothing under way."""


def test_everything_a_feed_counts_is_shown() -> None:
    """Totals as totals, reasons as labels."""
    registry = CollectorRegistry()
    metrics = FeedMetrics(registry)
    refusals = Refusals()
    refusals.counts["bad_isin"] = 7
    refusals.left_out["x=1"] = refusals.unknown_conditions["?"] = 8
    for acknowledged, now_s in ((0, 90.0), (10, 100.0), (10, 110.0)):
        progress = FeedProgress(1.0, acknowledged, 5.0, 0.25, 10, 6, 2)
        metrics.show(progress, refusals, Writer(), now_s)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"tickthrottle_feed_{name}", labels)

    assert value("acknowledged_trades_total") == 10
    assert value("refused_trades_total", reason="bad_isin") == 7
    assert value("refused_trades_total", reason="too_large_for_log") == 3
    assert value("refused_trades_total", reason="bad_price") == 0
    assert value("left_out_trades_total", condition="x=1") == 8
    assert value("unknown_conditions_total", condition="?") == 8
    assert value("retried_trades_total") == 6
    assert value("dropped_trades_total", reason="log_cap") == 2
    assert value("in_doubt_trades") == 5
    assert value("schedule_lag_seconds") == 0.25
    assert value("last_append_timestamp_seconds") == 100


@pytest.mark.redis
def test_a_running_feed_serves_its_metrics_and_frees_the_port(redis_url: str) -> None:
    """On the port of its settings, as long as it runs."""
    port, stop = free_port(), Flag()
    settings = IngestSettings(redis_url=redis_url, metrics_port=port)
    market = Simulator(rate=1_000, instruments=20)
    feed = Thread(target=run_simulator, args=(settings, market, stop))

    def acknowledged() -> float:
        url = f"http://127.0.0.1:{port}/metrics"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                lines = answer.read().decode().splitlines()
        except OSError:
            return 0
        name = "tickthrottle_feed_acknowledged_trades_total "
        return next(float(s.split()[1]) for s in lines if s.startswith(name))

    feed.start()
    try:
        first = eventually(acknowledged)
        eventually(lambda: acknowledged() > first)
        with pytest.raises(FeedError, match=f"metrics_port {port} of 127.0.0.1: Addr"):
            run_simulator(settings, market, Flag())
    finally:
        stop.set()
        feed.join()
    stop.set()
    run_simulator(settings, market, stop)
