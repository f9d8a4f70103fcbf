"""A live window is published by the task that has read all of it.

Its way through Spark to the driver would take as long as all else. The task publishes
with the driver's own code, under the job's term, and tells the driver of it. Whatever
is in the way, the rows go to the driver: it alone waits for a server that is away, and
says why nothing is published. To publish twice changes nothing.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import redis

from ingest.instrument_table.open_instrument_store import open_store_at
from ingest.kafka.address import KafkaTopic
from ingest.redis_keys import Keys
from throttle.contract.session_calendar import SessionCalendars
from throttle.lease.lease import Fenced, term_of
from throttle.publish.publisher import Publisher, PublishOptions, StreamLost
from throttle.spark.options import BatchRange, SourceOptions
from throttle.spark.published_batch import PublishedBatch
from throttle.spark.task_log import client_of
from throttle.spark.warmup import made_up_instruments
from throttle.watch.instrument_watch import InstrumentWatch
from throttle.window.batch import Batch, assemble
from throttle.window.conflated_rows import as_conflated
from throttle.window.instrument_columns import NO_INSTRUMENTS, InstrumentColumns
from throttle.window.row_schema import REFUSED_PREFIX
from throttle.window.vector_check import row_bodies
from tickthrottle_client.gc_pause import no_collection


class TaskPublisher:
    """Publishes windows of one job; what it knows of Redis is kept between them."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._client = client_of(options)
        self._columns = NO_INSTRUMENTS
        self._term = 0
        self._publisher: Publisher | None = None
        self._may_publish = False
        self._bodies: dict[bytes, bytes] = {}

    def begin(self, part: BatchRange) -> None:
        """Find out whether the task may publish its window, and ready what it needs.

        It may if the job has its lease, and if the instrument table is known that the
        windows before were joined with.
        """
        options, self._may_publish, self._bodies = self._options, False, {}
        place = options.redis_url, options.namespace, options.instruments
        watch = _instrument_watch(*place)
        newest = watch.newest()
        if newest is not self._columns.instruments:
            self._columns = InstrumentColumns(newest)
        with suppress(redis.RedisError):
            term = self._ask_term()
            if term and self._term != term:
                self._publisher, self._term = self._create_publisher(term), term
            is_later = newest.version >= part.start.instruments
            self._may_publish = term > 0 and watch.is_known and is_later

    def prepare(self, part: BatchRange, rows: pa.Table) -> None:
        """Do what can be done while the window is open, for the rows read so far."""
        if not self._may_publish or self._publisher is None:
            return
        is_trade = pc.invert(pc.starts_with(rows["key"], REFUSED_PREFIX))
        payloads = rows["payload"].filter(is_trade)
        bodies = row_bodies(payloads, self._bodies)
        self._bodies = dict(zip(payloads.to_pylist(), bodies, strict=True))
        isins = {*rows["key"].filter(is_trade).to_pylist()}
        try:
            self._publisher.prepare(part.start, isins)
        except redis.RedisError:
            self._may_publish = False

    def publish(self, rows: pa.Table, batch_id: int) -> pa.Table:
        """Publish a window; return the row that says so, or else its rows.

        They have the columns of ``row_schema.ARROW_SCHEMA``.
        """
        publisher = self._publisher
        if not self._may_publish or publisher is None:
            return rows
        with no_collection():
            batch = _assemble(
                rows, self._options.window_ms, self._columns, self._bodies
            )
            assembled_s = time.time()
            # The log is asked for trades that are taken back, by the driver.
            if batch.taking_back:
                return rows
            try:
                outcome = publisher.publish(batch, batch_id)
            except (redis.RedisError, Fenced, StreamLost):
                return rows
        return PublishedBatch(batch, outcome, assembled_s, time.time()).to_row()

    def _ask_term(self) -> int:
        """Return the job's term, 0 while its lease is nobody's or another's."""
        key = Keys(self._options.namespace).lease(self._options.job)
        lease = cast("bytes | None", self._client.get(key))
        return term_of(lease, self._options.owner)

    def _create_publisher(self, term: int) -> Publisher:
        options = self._options
        publish = PublishOptions(
            options.job,
            options.window_ms,
            options.window_log,
            "redis" if options.kafka is None else "kafka",
            calendars=SessionCalendars.create(*options.calendars),
            chain_key=bytes.fromhex(options.chain_key),
        )
        return Publisher(self._client, Keys(options.namespace), publish, term)


class Rehearsal:
    """Does with made-up windows all but the publish."""

    def __init__(self, options: SourceOptions) -> None:
        self._window_ms = options.window_ms
        self._columns = InstrumentColumns(made_up_instruments())
        # The table is read meanwhile.
        _instrument_watch(options.redis_url, options.namespace, options.instruments)

    def begin(self, part: BatchRange) -> None:
        """Do nothing: every window may be rehearsed."""

    def prepare(self, part: BatchRange, rows: pa.Table) -> None:
        """Do nothing: nothing is shown of made-up instruments."""

    def publish(self, rows: pa.Table, batch_id: int) -> pa.Table:
        """Return the rows."""
        with no_collection():
            batch = _assemble(rows, self._window_ms, self._columns)
            if batch.groups is not None:
                batch.groups.groups()
        return rows


@lru_cache(maxsize=2)
def task_publisher(options: SourceOptions) -> TaskPublisher | Rehearsal:
    """Return what publishes for a source, the same one for a query's life."""
    is_made_up = options.synthetic_live or options.synthetic_behind
    return Rehearsal(options) if is_made_up else TaskPublisher(options)


@lru_cache(maxsize=1)
def _instrument_watch(
    redis_url: str, namespace: str, topic: KafkaTopic | None
) -> InstrumentWatch:
    open_store = partial(open_store_at, redis_url, namespace, topic)
    # What it had to say the driver's own one says.
    return InstrumentWatch(open_store, is_quiet=True).__enter__()


def _assemble(
    rows: pa.Table,
    window_ms: int,
    instruments: InstrumentColumns,
    known_bodies: Mapping[bytes, bytes] | None = None,
) -> Batch:
    conflated = as_conflated(rows, window_ms)
    if instruments.version:
        conflated = instruments.join(conflated)
    return assemble(conflated, window_ms, instruments, known_bodies)
