"""Every metric there is, as a scrape of all processes would show it."""

from collections import Counter
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from archive.archive_metrics import ArchiveMetrics
from gateway.health.metrics import GatewayMetrics
from gateway.stream.close_log import CloseLog
from gateway.stream.counters import Counters
from ingest.adapters.adapter_metrics import AdapterMetrics
from ingest.feed.metrics import FeedMetrics
from ingest.market_hours.hours import MarketHours
from ingest.sources.event import Refusals
from intake.intake_app import IntakeMetrics
from throttle.analytics.metrics import AnalyticsMetrics
from throttle.contract.cut import Cut
from throttle.contract.tally import BatchNote
from throttle.telemetry.metrics import ThrottleMetrics

STATE = dict.fromkeys(
    ("numRowsTotal", "memoryUsedBytes", "commitTimeMs", "numRowsDroppedByWatermark"), 0
)


@dataclass(frozen=True)
class Metric:
    """A metric as it is documented: its name in a scrape, type and labels."""

    name: str
    kind: str
    labels: tuple[str, ...]

    @property
    def series(self) -> tuple[str, ...]:
        """The names that a query may use."""
        if self.kind == "histogram":
            return tuple(f"{self.name}_{end}" for end in ("bucket", "count", "sum"))
        return (self.name,)


def registries() -> list[CollectorRegistry]:
    """Return the metrics of every kind of process, just begun."""
    feed, throttle, gateway, archive, analytics = (
        CollectorRegistry() for _ in range(5)
    )
    conditions = Refusals(left_out=Counter(x=0), unknown_conditions=Counter(X=0))
    FeedMetrics(feed).count_conditions(conditions)
    AdapterMetrics(feed)
    IntakeMetrics(feed)
    ArchiveMetrics(archive)
    ThrottleMetrics(throttle).waiting([(0, 0)])
    shown = GatewayMetrics(gateway)
    shown.count(Counters(), CloseLog())
    shown.markets(MarketHours.parse("24/7").states(0))
    measured = AnalyticsMetrics(analytics)
    measured.published("bars", BatchNote(Cut(0, (), ()), Cut(0, (), ()), {}))
    measured.state("bars", STATE)
    return [feed, throttle, gateway, archive, analytics]


def every_metric() -> dict[str, Metric]:
    """Return every metric by its name."""
    found = {}
    for registry in registries():
        for family in registry.collect():
            name = family.name + ("_total" if family.type == "counter" else "")
            labels = {key for sample in family.samples for key in sample.labels}
            kind = family.type
            found[name] = Metric(name, kind, tuple(sorted(labels - {"le"})))
    return found


def scrapes() -> list[bytes]:
    """Return what each process shows."""
    return [generate_latest(registry) for registry in registries()]


def read_samples(text: str) -> dict[str, float]:
    """Return every sample of a scrape, by name and labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{k}={v}" for k, v in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = (
                sample.value
            )
    return found
