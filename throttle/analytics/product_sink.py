"""Sinks of products: publish what each batch changes once, under one term."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import pyarrow as pa
import redis
from pyspark.sql import DataFrame

from ingest.redis_keys import AnalyticsKeys
from throttle.analytics.batch_bars import split
from throttle.analytics.product_publisher import BatchChanges
from throttle.contract.bars import CLOSE_AFTER_MS
from throttle.contract.cut import Cut
from throttle.contract.tally import BatchNote
from throttle.publish.publisher import StreamLost
from throttle.settings import AnalyticsSettings

T = TypeVar("T")


class BatchPublisher(Protocol):
    """A ``ProductPublisher``, or what a test driver has in its place."""

    def publish(
        self,
        changes: BatchChanges,
        note: BatchNote,
        batch_id: int,
        clock_ms: int,
        *,
        takes_up: bool = False,
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class SinkMeans:
    """What a sink works with.

    ``state`` returns the rows that Spark's state held after a batch, ``prices`` windows
    with the prices of what stands in them (``standing_prices.py``). ``retry`` calls
    while Redis is away. ``report`` gets what a published batch has read, and how many
    of its bars were kept back.
    """

    settings: AnalyticsSettings
    state: Callable[[int], pa.Table]
    prices: Callable[[pa.Table, Cut], pa.Table]
    retry: Callable[[Callable[[], Any]], Any]
    report: Callable[[BatchNote, int], None]


class ProductSink(ABC, Generic[T]):
    """Publishes one product, batch by batch; a batch waits for its ``publisher``.

    Spark names the checkpoint of a query, under which is published, when that starts.
    ``error`` keeps what stopped it, in its own words. ``batch_id`` is that of the
    newest batch that came to its end, -1 before.
    """

    def __init__(self, means: SinkMeans) -> None:
        self._means, self._settings = means, means.settings
        self._keys = AnalyticsKeys(means.settings.namespace)
        self._has_published = self._is_lost = False
        self.publisher: Future[BatchPublisher] = Future()
        self.error: Exception | None = None
        self.is_open = False
        self.batch_id = -1

    @classmethod
    def create(cls, client: redis.Redis, means: SinkMeans) -> Self:
        """Create a sink for what is published in a Redis."""
        return cls(means)

    @abstractmethod
    def results(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[T]:
        """Return the results among the rows of a batch; notes are left out."""

    @abstractmethod
    def changes(self, results: Sequence[T], clock_ms: int) -> BatchChanges:
        """Return what results change once the log's clock is there."""

    def taken_up(self, batch_id: int, upto: Cut) -> Iterator[BatchChanges]:
        """Yield what the state held after a batch up to a cut, in one step or more."""
        # What is finished is in no state any more.
        yield replace(self.changes([], self.clock_ms(upto)), keep_as="")

    def state(self, batch_id: int, upto: Cut) -> pa.Table:
        """Return the rows of the state after a batch, which ended at a cut."""
        return self._means.prices(self._means.state(batch_id), upto)

    def settle(self) -> int:
        """Take over the newest changes, now published; return the bars kept back."""
        return 0

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish one batch. Spark may call it again for the same batch."""
        self.is_open = True
        try:
            self.take(frame.toArrow(), batch_id)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.is_open = False

    def take(self, rows: pa.Table, batch_id: int) -> None:
        """Publish the rows of one batch, as Spark's windows return them."""
        others, note = split(rows)
        if note is not None:
            retry, end = self._means.retry, note.end
            results = self.results(
                retry(lambda: self._means.prices(others, end)), note, batch_id
            )
            retry(lambda: self._publish(results, note, batch_id))
        self.batch_id = batch_id

    def clock_ms(self, cut: Cut) -> int:
        """Return the clock by which windows are finished at a cut."""
        return cut.end_ms - CLOSE_AFTER_MS

    def _publish(self, results: Sequence[T], note: BatchNote, batch_id: int) -> None:
        if not self._is_lost:
            try:
                self._publish_batch(results, note, batch_id)
                return
            except StreamLost:
                if self._has_published:
                    # What this job has published is gone: whoever leads begins anew.
                    raise
                self._is_lost = True
        begin = note, batch_id - 1, self.clock_ms(note.start)
        for changes in self.taken_up(batch_id - 1, note.start):
            self.publisher.result().publish(changes, *begin, takes_up=True)
            self.settle()
        # Before the last step was taken, a retry begins with the first one.
        self._is_lost = False
        self._publish_batch(results, note, batch_id)

    def _publish_batch(
        self, results: Sequence[T], note: BatchNote, batch_id: int
    ) -> None:
        clock_ms = self.clock_ms(note.end)
        changes = self.changes(results, clock_ms)
        is_new = self.publisher.result().publish(changes, note, batch_id, clock_ms)
        self._has_published = True
        if is_new:
            self._means.report(note, self.settle())


class HoldingSink(ProductSink[T]):
    """Holds the rows that Spark's state holds: batches say only what has changed.

    The state, with the columns of ``schema``, is asked at a job's start, and when a
    batch is run again.
    """

    schema: ClassVar[pa.Schema]

    def __init__(self, means: SinkMeans) -> None:
        super().__init__(means)
        self._held_after: int | None = None

    @abstractmethod
    def hold(self, rows: pa.Table) -> None:
        """Take what was held before a batch."""

    @abstractmethod
    def advance(self, rows: pa.Table, note: BatchNote) -> Sequence[T]:
        """Take in what a batch has changed; return the finished results."""

    def results(self, rows: pa.Table, note: BatchNote, batch_id: int) -> Sequence[T]:
        """Return the finished results of a batch and of the rows that are held."""
        if batch_id == 0:
            self.hold(self.schema.empty_table())
        elif self._held_after != batch_id - 1:
            self.hold(self.state(batch_id - 1, note.start))
        # What fails half-way is not what is held.
        self._held_after = None
        results = self.advance(rows, note)
        self._held_after = batch_id
        return results
