"""Which second of a burst a trade is in, and when it is too late. Pure."""

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_rule import FinalRule, floor

NOTE_MS = 1
"""How long before the clock a note is among bursts, and how long it lasts."""


@dataclass(frozen=True, slots=True)
class BurstPartials(FinalRule):
    """Seconds of bursts that end with a pause of ``gap_ms``, at least a second."""

    gap_ms: int

    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the seconds, and the ends of bursts that end with a trade."""
        ends = pc.add(made_ms, pa.scalar(self.gap_ms, pa.int64()))
        return floor(made_ms, 1_000), ends

    def finish(self, partials: pa.Table) -> pa.Table:
        """Return partial bars that begin with their first trade, not their second."""
        first = partials["first_time"].cast(pa.timestamp("us", tz="UTC"))
        return partials.set_column(0, "at", first)

    def control_ms(self, end_ms: int) -> tuple[int, int]:
        """Return the times of the note and of the tick of a batch that ends then."""
        # Among bursts a note is one that has just ended. No trade is later than the
        # batch's end, so the watermark is the clock, whatever trades there are.
        return end_ms - self.close_after_ms - NOTE_MS, end_ms
