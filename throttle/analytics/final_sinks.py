"""What Spark calls with every batch of what is over; of bursts all of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame

from throttle.analytics.batch_bars import bars_of, split
from throttle.analytics.product_publisher import BatchChanges, ProductPublisher
from throttle.contract.bars import CLOSE_AFTER_MS, Bar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.redis_keys import AnalyticsKeys
from throttle.contract.tally import BatchNote
from throttle.publish.publisher import StreamLost
from throttle.settings import AnalyticsSettings

T = TypeVar("T")


class FinalSink(ABC, Generic[T]):
    """Publishes what is over and never changes, under one term.

    ``error`` keeps what stopped it, in its own words. ``retry`` calls for as long as
    Redis is away.
    """

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
        self.error: Exception | None = None
        self.batches = 0

    @abstractmethod
    def found(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[T]:
        """Return what is over, of the rows of a batch."""

    @abstractmethod
    def changes(self, found: Sequence[T], clock_ms: int) -> BatchChanges:
        """Return what is changed by that which is over once the clock is there."""

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        try:
            rows, note = split(frame.toArrow())
            if note is not None:
                clock_ms = note.end.end_ms - CLOSE_AFTER_MS
                changes = self.changes(self.found(rows, note, batch_id), clock_ms)
                self._retry(lambda: self._publish(changes, note, batch_id, clock_ms))
        except Exception as error:
            self.error = error
            raise

    def _publish(
        self, changes: BatchChanges, note: BatchNote, batch_id: int, clock_ms: int
    ) -> None:
        try:
            is_new = self._publisher.publish(changes, note, batch_id, clock_ms)
        except StreamLost:
            if self.batches:
                raise
            # What was published before stays, or is gone: it is in no state any more.
            nothing = replace(self.changes([], clock_ms), keep_as="")
            self._publisher.take_up(nothing, note, batch_id - 1, clock_ms)
            is_new = self._publisher.publish(changes, note, batch_id, clock_ms)
        self.batches += 1
        if is_new and self._report_to is not None:
            self._report_to(note)


class HoldingSink(FinalSink[T]):
    """Holds the rows that Spark's state holds: batches say only what has changed.

    ``state`` returns the rows that Spark's state held after a batch, with the columns
    of ``schema``. It is asked when a job has started, and when a batch is run again.
    """

    schema: ClassVar[pa.Schema]

    def __init__(
        self,
        settings: AnalyticsSettings,
        publisher: ProductPublisher,
        retry: Callable[[Callable[[], Any]], Any],
        report_to: Callable[[BatchNote], None] | None,
        state: Callable[[int], pa.Table],
    ) -> None:
        super().__init__(settings, publisher, retry, report_to)
        self._state = state
        self._held_after: int | None = None

    @abstractmethod
    def hold(self, rows: pa.Table) -> None:
        """Take what was held before a batch."""

    @abstractmethod
    def take(self, rows: pa.Table, note: BatchNote) -> Sequence[T]:
        """Take in what a batch has changed; return what is over."""

    def found(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[T]:
        """Return what is over, of the rows of a batch and those that are held."""
        if self._held_after != batch_id - 1:
            is_first = batch_id == 0
            empty = self.schema.empty_table()
            self.hold(empty if is_first else self._state(batch_id - 1))
        # What fails half-way is not what is held.
        self._held_after = None
        found = self.take(rows, note)
        self._held_after = batch_id
        return found


class BurstSink(FinalSink[Bar]):
    """Each burst, once; the stream keeps the newest, a message those of its batch."""

    def found(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[Bar]:
        """Return the bursts as bars.

        Spark gives them out in a batch of their own, right after the one that read what
        made them be over.
        """
        return list(bars_of(rows))

    def changes(self, found: Sequence[Bar], clock_ms: int) -> BatchChanges:
        """Return the bursts that had ended by the clock, in the order of their ends."""
        key = AnalyticsKeys(self._settings.namespace).bursts
        kept = self._settings.events_kept
        ended = sorted(found, key=lambda bar: (bar.end_ms, bar.isin))
        lines = [TradingBurst(bar).encode() for bar in ended]
        head = orjson.dumps({"clock": clock_ms, "bursts": len(lines)})
        return BatchChanges(
            b"{",
            b"\n".join([b"," + head[1:], *lines]),
            [("XADD", key, "MAXLEN", "~", kept, "*", "burst", line) for line in lines],
        )
