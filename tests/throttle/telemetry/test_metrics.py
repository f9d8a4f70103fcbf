"""What the job counts, told to Prometheus."""

from collections import Counter
from dataclasses import replace

from prometheus_client import CollectorRegistry

from ingest.tradelog.contract import Tail
from throttle.contract.cut import Cut
from throttle.lease.retry import OutageLog
from throttle.publish.publisher import (
    REPEATED,
    PublishOutcome,
    ReadElsewhere,
    StreamLost,
)
from throttle.telemetry.batch_report import BatchReport, spark_stages, stage_fields
from throttle.telemetry.metrics import ThrottleMetrics
from throttle.watch.log_watch import lags
from throttle.window.batch import Batch, BatchWindow, PartitionCount

W = 2_000
PUBLISHED = PublishOutcome("e", 7, 2, 5, 1, 0)
COUNTS = [
    PartitionCount(read=10, superseded=4, refused=Counter(bad_isin=1, empty=2)),
    PartitionCount(read=7, superseded=2, not_last=2),
]


def make_report(
    published: PublishOutcome = PUBLISHED, end_ms: int = 20 * W
) -> BatchReport:
    """Return a batch of two windows, published half a second after its end."""
    batch = Batch(
        Cut(end_ms - 2 * W, (0, 0), (0, 0)),
        Cut(end_ms, (9, 4), (10, 5)),
        [BatchWindow(end_ms - W), BatchWindow(end_ms)],
        COUNTS,
        [],
    )
    stages_s = {"plan": 0.01, "read": 0.1, "collect": 0.03}
    stages_s |= {"assemble": 0.005, "publish": 0.02}
    return BatchReport(3, batch, published, end_ms / 1000 + 0.5, stages_s)


class Shown:
    """Metrics, and what they show."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.metrics = ThrottleMetrics(self.registry)

    def value(self, name: str, **labels: str) -> float | None:
        """Return a value by the end of its name."""
        return self.registry.get_sample_value(f"tickthrottle_throttle_{name}", labels)


def test_every_trade_read_is_counted_under_what_became_of_it() -> None:
    """Published, superseded, stale, not last and refused are what was read."""
    shown = Shown()
    shown.metrics.published(make_report())
    outcomes = {
        name: shown.value("trades_total", outcome=name)
        for name in ("published", "superseded", "stale", "not_last", "refused")
    }
    assert list(outcomes.values()) == [5, 6, 1, 2, 3]
    assert sum(filter(None, outcomes.values())) == sum(count.read for count in COUNTS)
    assert shown.value("refused_trades_total", reason="empty") == 2
    assert shown.value("refused_trades_total", reason="bad_price") == 0


def test_what_is_taken_back_is_counted_beside_what_became_of_it() -> None:
    """And so are those that name a trade that was not found."""
    shown, report = Shown(), make_report()
    counts = [PartitionCount(taken_back=3, unknown_target=1), PartitionCount()]
    outcome = replace(PUBLISHED, counts=counts)
    shown.metrics.published(replace(report, published=outcome))
    assert shown.value("taken_back_trades_total") == 3
    assert shown.value("unknown_targets_total") == 1


def test_the_lag_is_observed_once_per_window() -> None:
    """Two windows of one batch are two observations, each from its own end."""
    shown = Shown()
    shown.metrics.published(make_report())
    assert shown.value("publish_lag_seconds_count") == 2
    assert shown.value("publish_lag_seconds_bucket", le="0.5") == 1
    assert shown.value("publish_lag_seconds_bucket", le="3.0") == 2
    assert shown.value("windows_total") == 2
    assert shown.value("batches_total") == 1
    assert shown.value("window_end_timestamp_seconds") == 40
    assert shown.value("stage_seconds_sum", stage="read") == 0.1


def test_a_batch_that_was_published_before_is_not_counted_twice() -> None:
    """A repeat has a counter of its own."""
    shown = Shown()
    shown.metrics.published(make_report())
    shown.metrics.published(make_report(REPEATED))
    assert shown.value("repeated_batches_total") == 1
    assert shown.value("windows_total") == 2


def test_a_batch_that_is_read_again_is_counted_by_its_cause() -> None:
    """Both are told from the start: what appears with its first batch has not grown."""
    shown = Shown()
    assert shown.value("refused_batches_total", cause="stream_lost") == 0
    for error in (StreamLost(), ReadElsewhere(), ReadElsewhere()):
        shown.metrics.refused(error.cause)
    assert shown.value("refused_batches_total", cause="stream_lost") == 1
    assert shown.value("refused_batches_total", cause="read_elsewhere") == 2


def test_books_that_are_off_show_by_how_much_until_they_balance() -> None:
    """The gauge follows the newest batch."""
    shown = Shown()
    assert shown.value("ledger_off_by_trades") == 0
    shown.metrics.published(make_report(PublishOutcome("e", 7, 2, 5, 1, 12)))
    assert shown.value("ledger_off_by_trades") == 12
    shown.metrics.published(make_report())
    assert shown.value("ledger_off_by_trades") == 0


def test_an_outage_is_counted_once_and_ends() -> None:
    """However often it fails meanwhile, and whoever asks."""
    shown = Shown()
    outage = OutageLog(on_change=lambda away: shown.metrics.server_away("redis", away))
    outage.failed("lease", OSError("gone"))
    outage.failed("job", OSError("gone"))
    assert shown.value("server_away", server="redis") == 1
    outage.answered("lease")
    assert shown.value("server_away", server="redis") == 1
    outage.answered("job")
    assert shown.value("server_away", server="redis") == 0
    assert shown.value("outages_total", server="redis") == 1
    assert shown.value("outages_total", server="trade_log") == 0


def test_the_lease_is_held_while_the_job_leads() -> None:
    """And not before, nor after."""
    shown = Shown()
    assert shown.value("lease_held") == 0
    with shown.metrics.leading():
        assert shown.value("lease_held") == 1
    assert shown.value("lease_held") == 0


def test_what_waits_is_what_the_log_counted_behind_the_cut() -> None:
    """A partition whose count nobody knows is left out, a new one begins with none."""
    tail = Tail(0, (0, 1, 2), (9, 9, 9), (14, None, 3))
    cut = Cut(20 * W, (5, 5), (10, 5))
    assert list(lags(cut, tail)) == [(0, 4), (2, 3)]
    assert list(lags(Cut(0, (), ()), tail)) == []
    shown = Shown()
    shown.metrics.waiting(lags(cut, tail))
    assert shown.value("lag_trades", partition="0") == 4


def test_the_stages_of_a_batch_are_told_in_milliseconds() -> None:
    """Our own and Spark's, but not how long Spark waited for the window's end."""
    spark_s = spark_stages({"walCommit": 31, "latestOffset": 1900, "queryPlanning": 8})
    assert spark_s == {"query_planning": 0.008, "offset_log": 0.031}
    assert stage_fields(make_report(), spark_s) == {
        "batch": "3",
        "window": "40000",
        "plan_ms": "10",
        "read_ms": "100",
        "collect_ms": "30",
        "assemble_ms": "5",
        "publish_ms": "20",
        "query_planning_ms": "8",
        "offset_log_ms": "31",
    }
