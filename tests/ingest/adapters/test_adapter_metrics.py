"""What a feed from an exchange shows to Prometheus."""

from prometheus_client import CollectorRegistry, generate_latest

from ingest.adapters.adapter import ExchangeTrade, Notice, Numbering, Skip
from ingest.adapters.adapter_metrics import AdapterMetrics
from ingest.adapters.intake import Intake
from ingest.sources.event import Refusals
from tests.ingest.adapters.test_intake import ISIN, NOW_US, Played
from tests.metrics import read_samples


def test_every_count_is_shown() -> None:
    registry = CollectorRegistry()
    metrics = AdapterMetrics(registry)
    intake = Intake("MYX", Numbering.BY_ONE, {"A": ISIN}, Refusals())
    trades = [
        ExchangeTrade("A", NOW_US, "1", "1", number, sent_us=NOW_US - 500_000)
        for number in (1, 5, 3, 5)
    ]
    drift = Notice("records have 48 fields", is_drift=True)
    intake.read(Played(*trades, Skip("ack"), drift), "", NOW_US)
    for _ in range(2):
        metrics.show(intake, 2, 3, takes_nothing=True)
    samples = read_samples(generate_latest(registry).decode())
    found = {
        name.removeprefix("tickthrottle_feed_"): value
        for name, value in samples.items()
        if "created" not in name
    }
    assert found == {
        "frames_total": 1,
        "repeated_trades_total": 1,
        "missing_trades_total": 3,
        "late_trades_total": 1,
        "number_jumps_total": 0,
        "unremembered_trades_total": 0,
        "drifted_frames_total": 1,
        "takes_nothing": 1,
        "reconnects_total": 3,
        "skipped_frames_total{reason=keep_alive}": 0,
        "skipped_frames_total{reason=ack}": 1,
        "connections": 2,
        "clock_difference_seconds": -0.5,
    }
