"""What a feed from an exchange counts besides what every feed does."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from ingest.adapters.intake import Intake
from ingest.process.prometheus import LabelledTotals, Total

_COUNTERS = {
    "frames": "Frames that came from the exchange.",
    "repeated_trades": (
        "Trades that came again, by the exchange's numbers; not appended."
    ),
    "missing_trades": "Trades that never came, by the exchange's numbers.",
    "late_trades": "Trades that were missing and came later.",
    "number_jumps": (
        "Numbers or volumes of trades that jumped, or volumes that went back."
    ),
    "unremembered_trades": (
        "Trades older than those remembered: appended, whether they came before or not."
    ),
    "drifted_frames": (
        "Frames whose records have a form that the adapter does not know; read by "
        "position."
    ),
    "reconnects": "Connections to the exchange that ended and were opened again.",
}


class AdapterMetrics:
    """The metrics of one feed from an exchange."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str, *labels: str) -> Counter:
            name = f"tickthrottle_feed_{name}_total"
            return Counter(name, meaning, labels, registry=registry)

        def gauge(name: str, meaning: str, mode: str) -> Gauge:
            return Gauge(
                f"tickthrottle_feed_{name}",
                meaning,
                registry=registry,
                multiprocess_mode=mode,  # type: ignore[arg-type]
            )

        self._totals = {
            name: Total(counter(name, meaning)) for name, meaning in _COUNTERS.items()
        }
        skipped = counter(
            "skipped_frames",
            "Frames, or parts of one, that were no trades and are none.",
            "reason",
        )
        self._skipped = LabelledTotals(skipped, ["keep_alive"])
        self._open = gauge(
            "connections", "Connections to exchanges that are open.", "livesum"
        )
        self._takes_nothing = gauge(
            "takes_nothing", "Whether trades come and none of them is taken.", "livemax"
        )
        self._clock = gauge(
            "clock_difference_seconds",
            "The exchange's clock minus this machine's, as far as frames tell.",
            "livemostrecent",
        )

    def show(
        self, intake: Intake, open_now: int, reconnects: int, takes_nothing: bool
    ) -> None:
        """Take in how the feed is doing."""
        counts, numbers = intake.counts, intake.numbers
        totals = {
            "frames": counts.frames,
            "repeated_trades": numbers.repeated,
            "missing_trades": numbers.missing,
            "late_trades": numbers.late,
            "number_jumps": numbers.jumps,
            "unremembered_trades": numbers.unremembered,
            "drifted_frames": counts.drifted,
            "reconnects": reconnects,
        }
        for name, total in totals.items():
            self._totals[name].reach(total)
        self._skipped.reach(counts.skipped.copy())
        self._takes_nothing.set(takes_nothing)
        self._open.set(open_now)
        if (seconds := intake.clock.seconds) is not None:
            self._clock.set(seconds)
