"""What Spark calls with every batch of panes: the list of the span that is over."""

from collections.abc import Sequence

import pyarrow as pa

from throttle.analytics.batch_bars import bars_of
from throttle.analytics.final_sinks import HoldingSink
from throttle.analytics.movers.recent_panes import SCHEMA, RecentPanes
from throttle.analytics.product_publisher import BatchChanges
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.products.movers import MoversList, rank, row
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import BatchNote

MOVERS_TOP = 50
"""Issues in each list of movers."""


class MoversSink(HoldingSink[Bar]):
    """The newest list: of several spans, after an outage, only the newest is listed.

    Its state has the columns of ``recent_panes.SCHEMA``.
    """

    schema = SCHEMA

    def hold(self, rows: pa.Table) -> None:
        """Take the panes that were held before a batch."""
        self._recent = RecentPanes(self._span_ms, rows)

    def take(self, rows: pa.Table, note: BatchNote) -> Sequence[Bar]:
        """Return the issues of the span that ends with the clock, as bars."""
        end_ms = note.end.end_ms - CLOSE_AFTER_MS
        return list(bars_of(self._recent.span(rows, end_ms)))

    def changes(self, found: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the list of the span that ends with the clock."""
        lists = {
            name: [row(bar) for bar in ranked]
            for name, ranked in rank(found, MOVERS_TOP).items()
        }
        bounds = clock_ms - self._span_ms, clock_ms
        message = MoversList("", 0, *bounds, len(found), lists).encode()
        rest = message.partition(b'"sequence":0')[2]
        kept_as = AnalyticsKeys(self._settings.namespace).movers
        return BatchChanges(b"{", rest, keep_as=kept_as)

    @property
    def _span_ms(self) -> int:
        return self._settings.movers_span_s * 1000
