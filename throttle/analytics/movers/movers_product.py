"""Movers: hopping windows, each the sum of its panes."""

from collections.abc import Sequence

import pyarrow as pa

from throttle.analytics.batch_bars import bars_of, shown_bars
from throttle.analytics.movers.recent_panes import SCHEMA, PanePartials, RecentPanes
from throttle.analytics.product import Product
from throttle.analytics.product_publisher import BatchChanges
from throttle.analytics.product_sink import HoldingSink
from throttle.analytics.tumbling_bars import bars_in_state, tumbling_bars
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.products.movers import MoversList, rank, row
from throttle.contract.tally import BatchNote

MOVERS_TOP = 50
"""Instruments in each list of movers."""


class MoversSink(HoldingSink[Bar]):
    """The newest list: of several spans, after an outage, only the newest is listed."""

    schema = SCHEMA

    def hold(self, rows: pa.Table) -> None:
        """Take the panes that were held before a batch."""
        self._recent = RecentPanes(self._span_ms, rows)

    def advance(self, rows: pa.Table, note: BatchNote) -> Sequence[Bar]:
        """Return the instruments of the span that ends with the clock, as bars."""
        span = self._recent.span(rows, self.clock_ms(note.end))
        return [bar for bar in bars_of(span) if bar.trades]

    def changes(self, results: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the list of the span that ends with the clock."""
        lists = {
            name: [row(bar) for bar in ranked]
            for name, ranked in rank(results, MOVERS_TOP).items()
        }
        bounds = clock_ms - self._span_ms, clock_ms
        message = MoversList("", 0, *bounds, len(results), lists).encode()
        rest = message.partition(b'"sequence":0')[2]
        return BatchChanges(rest, keep_as=self._keys.movers)

    @property
    def _span_ms(self) -> int:
        return self._settings.movers_span_s * 1000


MOVERS = Product(
    name="movers",
    form=3,
    state_settings=("movers_span_s", "movers_every_s"),
    rule=lambda settings: PanePartials(
        settings.movers_every_s * 1_000,
        CLOSE_AFTER_MS,
        settings.movers_span_s * 1_000,
    ),
    # A pane is needed for as long as a span to come holds it.
    kept_ms=lambda settings: settings.movers_span_s * 1_000,
    windows=lambda rows, settings, kept_ms: tumbling_bars(
        rows, settings.movers_every_s * 1_000, kept_ms
    ),
    mode="update",
    sink=MoversSink,
    state=bars_in_state,
    shown=shown_bars,
)
