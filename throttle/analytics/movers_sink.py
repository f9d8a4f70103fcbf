"""What Spark calls with every batch of spans: the newest list of movers, once."""

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from throttle.analytics.batch_bars import split
from throttle.analytics.product_publisher import BatchChanges, ProductPublisher
from throttle.contract.bars import Bar
from throttle.contract.movers import MoversList, rank, row
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.publish.publisher import StreamLost
from throttle.settings import AnalyticsSettings


class MoversSink:
    """Publishes the newest span of each batch, under one term.

    Spark gives spans out in a batch of their own, right after the one that read what
    made them be over. Of several, after an outage, only the newest is listed.
    """

    product = "movers"

    def __init__(
        self,
        settings: AnalyticsSettings,
        publisher: ProductPublisher,
        retry: Callable[[Callable[[], Any]], Any],
        report_to: Callable[[BatchNote], None] | None = None,
    ) -> None:
        self._settings = settings
        self._publisher = publisher
        self._retry = retry
        self._report_to = report_to
        self._kept_as = AnalyticsKeys(settings.namespace).movers
        self.error: Exception | None = None
        self.batches = 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        try:
            bars, note = split(frame.toArrow())
            if note is not None:
                changes = self._changes(bars, note)
                self._retry(lambda: self._publish(changes, note, batch_id))
        except Exception as error:
            self.error = error
            raise

    def _changes(self, bars: Sequence[Bar], note: BatchNote) -> BatchChanges:
        settings = self._settings
        end_ms = note.end.end_ms - settings.close_after_ms
        start_ms = end_ms - settings.movers_span_s * 1000
        newest = [bar for bar in bars if bar.end_ms == end_ms]
        lists = {
            name: [row(bar) for bar in ranked]
            for name, ranked in rank(newest, settings.movers_top).items()
        }
        message = MoversList("", 0, start_ms, end_ms, len(newest), lists).encode()
        rest = message.partition(b'"sequence":0')[2]
        return BatchChanges(b"{", rest, keep_as=self._kept_as)

    def _publish(self, changes: BatchChanges, note: BatchNote, batch_id: int) -> None:
        clock_ms = note.end.end_ms - self._settings.close_after_ms
        try:
            is_new = self._publisher.publish(changes, note, batch_id, clock_ms)
        except StreamLost:
            if self.batches:
                raise
            # Whatever was listed before is of no account: the newest list is whole.
            self._publisher.take_up(changes, note, batch_id - 1, clock_ms)
            is_new = self._publisher.publish(changes, note, batch_id, clock_ms)
        self.batches += 1
        if is_new and self._report_to is not None:
            self._report_to(note)
