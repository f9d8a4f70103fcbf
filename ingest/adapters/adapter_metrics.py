"""What a feed from an exchange counts besides what every feed does."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from ingest.adapters.intake import Intake
from ingest.process.prometheus import Total


class AdapterMetrics:
    """The metrics of one feed from an exchange."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(name: str, meaning: str) -> Total:
            return Total(Counter(name, meaning, registry=registry))

        self._frames = counter(
            "tickthrottle_feed_frames_total", "Frames that came from the exchange."
        )
        self._repeated = counter(
            "tickthrottle_feed_repeated_trades_total",
            "Trades that came again, by the exchange's numbers; not appended.",
        )
        self._missing = counter(
            "tickthrottle_feed_missing_trades_total",
            "Trades that never came, by the exchange's numbers.",
        )
        self._late = counter(
            "tickthrottle_feed_late_trades_total",
            "Trades that were missing and came later.",
        )
        self._jumps = counter(
            "tickthrottle_feed_number_jumps_total",
            "Numbers or volumes of trades that jumped, or volumes that went back.",
        )
        self._unremembered = counter(
            "tickthrottle_feed_unremembered_trades_total",
            "Trades older than those remembered: appended, whether they came before "
            "or not.",
        )
        self._drifted = counter(
            "tickthrottle_feed_drifted_frames_total",
            "Frames whose records have a form that the adapter does not know; read by "
            "position.",
        )
        self._reconnects = counter(
            "tickthrottle_feed_reconnects_total",
            "Connections to the exchange that ended and were opened again.",
        )
        self._skipped_counter = Counter(
            "tickthrottle_feed_skipped_frames_total",
            "Frames, or parts of one, that were no trades and are none.",
            ["reason"],
            registry=registry,
        )
        self._skipped = {
            "keep_alive": Total(self._skipped_counter.labels("keep_alive"))
        }
        self._open = Gauge(
            "tickthrottle_feed_connections",
            "Connections to exchanges that are open.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._takes_nothing = Gauge(
            "tickthrottle_feed_takes_nothing",
            "Whether trades come and none of them is taken.",
            registry=registry,
            multiprocess_mode="livemax",
        )
        self._clock = Gauge(
            "tickthrottle_feed_clock_difference_seconds",
            "The exchange's clock minus this machine's, as far as frames tell.",
            registry=registry,
            multiprocess_mode="livemostrecent",
        )

    def show(
        self,
        intake: Intake,
        open_now: int,
        reconnects: int,
        takes_nothing: bool = False,
    ) -> None:
        """Take in how the feed is doing."""
        self._frames.reach(intake.counts.frames)
        self._repeated.reach(intake.numbers.repeated)
        self._missing.reach(intake.numbers.missing)
        self._late.reach(intake.numbers.late)
        self._jumps.reach(intake.numbers.jumps)
        self._unremembered.reach(intake.numbers.unremembered)
        self._drifted.reach(intake.counts.drifted)
        self._reconnects.reach(reconnects)
        self._takes_nothing.set(takes_nothing)
        self._open.set(open_now)
        for reason, count in intake.counts.skipped.copy().items():
            if reason not in self._skipped:
                self._skipped[reason] = Total(self._skipped_counter.labels(reason))
            self._skipped[reason].reach(count)
        if (seconds := intake.clock.seconds) is not None:
            self._clock.set(seconds)
