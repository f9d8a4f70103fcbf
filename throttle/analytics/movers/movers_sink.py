"""What Spark calls with every batch of panes: the list of the span that is over."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from throttle.analytics.batch_bars import bars_of
from throttle.analytics.final_sinks import FinalSink
from throttle.analytics.movers.recent_panes import SCHEMA, RecentPanes
from throttle.analytics.product_publisher import BatchChanges, ProductPublisher
from throttle.contract.bars import Bar
from throttle.contract.products.movers import MoversList, rank, row
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.settings import AnalyticsSettings


class MoversSink(FinalSink[Bar]):
    """The newest list: of several spans, after an outage, only the newest is listed.

    ``state`` returns the panes that Spark's state held after a batch, with the columns
    of ``recent_panes.SCHEMA``. It is asked once; from then on the sink has them.
    """

    def __init__(
        self,
        settings: AnalyticsSettings,
        publisher: ProductPublisher,
        retry: Callable[[Callable[[], Any]], Any],
        report_to: Callable[[BatchNote], None] | None,
        state: Callable[[int], pa.Table],
    ) -> None:
        super().__init__(settings, publisher, retry, report_to)
        self._span_ms = settings.movers_span_s * 1000
        self._state = state
        self._recent = RecentPanes(self._span_ms, SCHEMA.empty_table())
        self._batch = -1

    def found(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Bar]:
        """Return the issues of the span that ends with the clock, as bars."""
        if self._batch != batch_id - 1:
            # A job that has started anew, or a batch that is run again.
            self._recent = RecentPanes(self._span_ms, self._held(batch_id - 1))
        end_ms = note.end.end_ms - self._settings.close_after_ms
        span = self._recent.span(rows, end_ms)
        self._batch = batch_id
        return list(bars_of(span))

    def _held(self, batch_id: int) -> pa.Table:
        return SCHEMA.empty_table() if batch_id < 0 else self._state(batch_id)

    def changes(self, found: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the list of the span that ends with the clock."""
        lists = {
            name: [row(bar) for bar in ranked]
            for name, ranked in rank(found, self._settings.movers_top).items()
        }
        bounds = clock_ms - self._span_ms, clock_ms
        message = MoversList("", 0, *bounds, len(found), lists).encode()
        rest = message.partition(b'"sequence":0')[2]
        kept_as = AnalyticsKeys(self._settings.namespace).movers
        return BatchChanges(b"{", rest, keep_as=kept_as)
