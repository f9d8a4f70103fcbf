"""Which bar a trade is in; whether it amends a closed bar, or came too late. Pure."""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_bars import US_PER_MS, ZERO
from throttle.analytics.partials.partial_rule import (
    PartialRule,
    PlacedTrades,
    floor,
)


@dataclass(frozen=True, slots=True)
class BarPartials(PartialRule):
    """Bars of ``bars_ms``, amended for ``lateness_ms`` after they have closed.

    A bar closes ``close_after_ms`` after its end.
    """

    takes_back: ClassVar[bool] = True
    keeps_series: ClassVar[bool] = True

    bars_ms: int
    lateness_ms: int

    def place(self, trades: pa.Table) -> PlacedTrades:
        """Place trades: one that was appended when its bar had closed is ``late``.

        It amends the bar, unless that closed ``lateness_ms`` ago.
        """
        starts = floor(pc.divide(trades["time"], US_PER_MS), self.bars_ms)
        lasts_ms = pa.scalar(self.bars_ms + self.close_after_ms, pa.int64())
        since_ms = pc.subtract(trades["append_ms"], pc.add(starts, lasts_ms))
        in_time = pc.less(since_ms, pa.scalar(self.lateness_ms, pa.int64()))
        late = pc.greater_equal(since_ms, ZERO).cast(pa.int64())
        return PlacedTrades(trades, starts, in_time, late)
