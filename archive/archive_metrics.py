"""What an archive does, as Prometheus metrics."""

from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from archive.contract.archive_state import ArchiveState
from ingest.process.prometheus import ProcessMetrics, Total


class ArchiveMetrics:
    """The metrics of one archive."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.process = ProcessMetrics(registry, "archive")
        self._totals = {
            name: Total(
                Counter(f"tickthrottle_archive_{name}_total", text, registry=registry)
            )
            for name, text in {
                "windows": "Windows stored.",
                "rows": "Rows stored.",
                "unknown_instrument": "Rows of instruments that the table lacked.",
                "gaps": "Gaps found between stored windows.",
                "missing_windows": "Windows the log had lost before they were stored.",
                "bars": "Bars stored, amended ones each time.",
                "bar_gaps": "Gaps found between stored batches of bars.",
                "missing_bar_batches": "Batches of bars the bar log had lost before "
                "they were stored.",
                "statuses": "Trading statuses stored.",
                "status_gaps": "Gaps found between stored statuses.",
                "missing_statuses": "Statuses the log had lost before they were "
                "stored.",
                "tidy_failures": "Merges and removals of old days that failed.",
            }.items()
        }

        def gauge(name: str, text: str, mode: Literal["max", "livemax"]) -> Gauge:
            name = f"tickthrottle_archive_{name}"
            return Gauge(name, text, registry=registry, multiprocess_mode=mode)

        self._window_end = gauge(
            "window_end_timestamp_seconds",
            "End of the newest window stored, 0 before the first.",
            "max",
        )
        self._bytes = gauge("stored_bytes", "Bytes that are stored.", "livemax")
        self._damaged = gauge(
            "damaged_segments",
            "Segments that cannot be read and were set aside.",
            "livemax",
        )
        self._away = gauge(
            "destination_away", "1 while nothing can be stored.", "livemax"
        )
        self._away.set(0)
        self._seconds = Histogram(
            "tickthrottle_archive_store_seconds",
            "Time to store the windows and bars of one flush.",
            registry=registry,
            buckets=(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        )

    def show(self, state: ArchiveState) -> None:
        for name, total in self._totals.items():
            total.reach(getattr(state, name))
        self._window_end.set(state.window / 1_000)
        self._bytes.set(state.stored_bytes)
        self._damaged.set(state.damaged_segments)
        self._away.set(state.problem is not None)
        self.process.observe()

    def stored_in(self, seconds: float) -> None:
        self._seconds.observe(seconds)
