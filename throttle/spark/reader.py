"""Reading the trade log for Spark: where a batch begins, its boundary, its rows.

What ``source.py`` says to Spark, said to the log's server. While that is away no batch
is planned, and one that is open is read on when it is back.
"""

import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
import pyarrow as pa
import redis
from pyspark import TaskContext

from ingest.redis_keys import Keys
from ingest.tradelog.contract import NO_SERVER, LogReader
from throttle.contract import cut
from throttle.contract.cut import Cut
from throttle.contract.ledger import NOTHING
from throttle.lease.lease import owner_of
from throttle.lease.retry import AWAY
from throttle.spark.options import BatchRange, SourceOptions
from throttle.spark.task_log import (
    LONGEST_WAIT_S,
    CheckedPieces,
    ask_patiently,
    client_of,
    open_log_reader,
    outages_pass,
    read_patiently,
)
from throttle.spark.warmup import SyntheticLog
from throttle.window.bounded_rows import bound_letters
from throttle.window.combine import combine
from throttle.window.control_rows import abandoned_row, cut_row, read_row
from throttle.window.open_batch import BatchPlan, next_step_ms, plan_after
from throttle.window.row_schema import ARROW_SCHEMA

if TYPE_CHECKING:
    from throttle.spark.task_publish import Rehearsal, TaskPublisher

# A standby asks this often whether it may begin.
_ASK_AGAIN_S = 0.05

# How often a log is asked, in the margin of its clock, whether a window is over.
_QUESTIONS_IN_MARGIN = 10

# So many rows are combined at a time, and again what such pieces leave: of a backlog
# a task hands on one row of each instrument in a window, unless they are very many.
_COMBINED_AT_ONCE = 40_000
_MOST_COMBINED = 100_000


class SparkEnded(RuntimeError):
    """The process that asked has gone: nobody waits for the answer."""


def first_offset(options: SourceOptions) -> dict[str, Any]:
    """Return the plan of nothing that ends where the job begins.

    Waits until the job holds its lease. Raises SparkEnded.
    """
    if options.initial_offset:
        return dict(orjson.loads(options.initial_offset))
    client, parent = client_of(options), os.getppid()
    while True:
        with outages_pass():
            standing = _ask_standing(client, options)
            if standing.holds_lease and standing.cut is not None:
                return plan_after(standing.cut).to_offset()
        time.sleep(_ASK_AGAIN_S)
        if os.getppid() != parent:
            raise SparkEnded("Spark's JVM has ended")


class _Standing(NamedTuple):
    """How a source's job stands in Redis; ``cut`` is the one published last.

    ``may_publish`` also where its lease has run out, or is gone with all that an
    emptied Redis held: whoever publishes finds out. It may not once it has given the
    lease back, or another job has it.
    """

    holds_lease: bool
    may_publish: bool
    cut: Cut | None


def _ask_standing(client: redis.Redis, options: SourceOptions) -> _Standing:
    keys, job = Keys(options.namespace), options.job
    with client.pipeline(transaction=True) as pipe:
        pipe.get(keys.lease(job))
        pipe.hmget(keys.meta, [f"cut:{job}", f"released:{job}"])
        lease, (stored, released) = pipe.execute()
    published = None if stored is None else Cut.from_offset(orjson.loads(stored))
    holds = lease is not None and owner_of(lease) == options.owner
    has_run_out = lease is None and released != options.owner.encode()
    return _Standing(holds, holds or has_run_out, published)


def next_plan(options: SourceOptions, previous: BatchPlan) -> BatchPlan:
    """Return the plan of the batch that follows; ``previous`` while there is none."""
    with outages_pass():
        log = open_log_reader(options)
        start = _next_start(log, options, previous.end_ms)
        if start is not None:
            end_ms = cut.next_end(
                start.end_ms, log.clock_ms(), options.window_ms, options.max_windows
            )
            return BatchPlan(start, end_ms, log.partitions())
    time.sleep(LONGEST_WAIT_S)
    return previous


def _next_start(log: LogReader, options: SourceOptions, end_ms: int) -> Cut | None:
    """Return the cut published last, where a batch begins; None while none is due."""
    if isinstance(log, SyntheticLog):
        # Nothing is published of it.
        return None if log.is_read(end_ms) else cut.newest_cut(log.tail(end_ms), end_ms)
    standing = _ask_standing(client_of(options), options)
    published = standing.cut
    if not standing.may_publish:
        return None
    if published is None or published.end_ms != end_ms:
        # The stream was emptied or rolled back, and who publishes says so: a batch
        # that begins here fits to nothing that is stored.
        return Cut(end_ms, (cut.NOWHERE,), (None,))
    return published


def read_batches(
    options: SourceOptions,
    part: BatchRange,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows from a cut to a boundary, combined, and what was read of the log.

    Columns are those of ``row_schema.ARROW_SCHEMA``. An open window is read in steps;
    the cut is made once the boundary has passed. It names the server that was read; if
    another one answers by then, both. ``pause`` is called with the seconds to wait.
    Of a window that the task has published there is one row, which says so.
    """
    log, rows, reached = open_log_reader(options), _Rows(options, part), part.start
    publisher = _publisher_of(options, part)
    server = ask_patiently(log.server_id)
    while True:
        tail = ask_patiently(partial(log.tail, part.end_ms, part.partitions))
        is_over = cut.may_be_cut(part.end_ms, tail)
        # In the margin of its clock the log is only asked: reading would be later.
        if is_over or _left_ms(log, part.end_ms) > 0:
            upto = cut.advance(reached, part.end_ms, tail)
            # A window that ended long ago is large; a step of an open one is small.
            is_backlog = is_over and reached == part.start
            yield from rows.read(log, reached, upto, is_backlog)
            reached = upto
        if is_over:
            break
        so_far = rows.combine()
        if publisher is not None:
            publisher.prepare(part, so_far)
        if not _wait_for_step(log, options, part.end_ms, pause):
            yield from abandoned_row(part.end_ms).to_batches()
            return
    servers = {server, ask_patiently(log.server_id)} - {NO_SERVER}
    rest = rows.rest(reached, servers)
    if publisher is not None and not rows.are_handed_on:
        rest = publisher.publish(rest, _batch_id())
    yield from rest.combine_chunks().to_batches()


def _publisher_of(
    options: SourceOptions, part: BatchRange
) -> "TaskPublisher | Rehearsal | None":
    """Return what publishes a task's window, None if it is for the driver."""
    if not (part.is_window and options.window_log):
        return None
    # Who plans batches does not need it.
    from throttle.spark.task_publish import task_publisher

    publisher = task_publisher(options)
    publisher.begin(part)
    return publisher


def _batch_id() -> int:
    """Return Spark's number of the batch that this task is of, 0 outside of Spark."""
    context = TaskContext.get()
    number = context and context.getLocalProperty("streaming.sql.batchId")
    return int(number or 0)


def _left_ms(log: LogReader, end_ms: int) -> int:
    """Return how long a window is open still, by the log's clock without its margin."""
    return end_ms - log.margin_ms - ask_patiently(log.clock_ms)


def _wait_for_step(
    log: LogReader,
    options: SourceOptions,
    end_ms: int,
    pause: Callable[[float], None],
) -> bool:
    """Wait until an open window is to be read on; False once the batch is given up."""
    parent = os.getppid()
    left_ms = _left_ms(log, end_ms)
    step_at_ms = left_ms - log.margin_ms / _QUESTIONS_IN_MARGIN
    if left_ms > 0:
        step_at_ms = next_step_ms(left_ms)
    while left_ms > step_at_ms:
        pause(min(left_ms - step_at_ms, LONGEST_WAIT_S * 1000) / 1000)
        if os.getppid() != parent:
            raise SparkEnded("Spark has ended")
        if step_at_ms == 0 and left_ms <= LONGEST_WAIT_S * 1000:
            # It is over, as the log's end will say, and clients wait.
            return True
        left_ms = _left_ms(log, end_ms)
        # A job that ends, or was taken over from, gives its batch up: in the middle of
        # one Spark cannot be stopped without a noise.
        with suppress(*AWAY):
            if not _ask_standing(client_of(options), options).may_publish:
                return False
    return True


class _Rows:
    """What one task has read so far of a batch."""

    def __init__(self, options: SourceOptions, part: BatchRange) -> None:
        self._options = options
        self._part = part
        self._pieces = CheckedPieces(options, part.start.end_ms, part.end_ms)
        self._letters = Counter[int]()
        self._tables: list[pa.Table] = []
        self.are_handed_on = False

    def read(
        self, log: LogReader, start: Cut, end: Cut, is_backlog: bool
    ) -> Iterator[pa.RecordBatch]:
        """Read and check what lies between two cuts; yield what has become much."""
        chunks = read_patiently(log, cut.between(start, end, self._part.partitions))
        fresh: list[pa.Table] = []
        for rows in self._pieces.read(chunks, is_backlog):
            fresh.append(bound_letters(rows, self._letters))
            if _rows_of(fresh) >= _COMBINED_AT_ONCE:
                self._tables.append(self._combined(fresh))
                fresh = []
            if _rows_of(self._tables) >= _MOST_COMBINED:
                self.combine()
                # What hardly becomes less is many instruments: it is not kept here.
                if _rows_of(self._tables) > _MOST_COMBINED // 2:
                    self.are_handed_on = True
                    yield from self._tables.pop().combine_chunks().to_batches()
        self._tables += fresh

    def combine(self) -> pa.Table:
        """Keep, and return, each instrument's latest trade: less to do in the end."""
        if len(self._tables) > 1:
            self._tables = [self._combined(self._tables)]
        return self._tables[0] if self._tables else ARROW_SCHEMA.empty_table()

    def rest(self, end: Cut, servers: Collection[str]) -> pa.Table:
        """Return what was not yielded yet, what was read and where, and the cut."""
        read = self._pieces
        self._tables += [
            read_row(
                *(p, read.entries[p], read.blanks[p], end, read.extra[p]),
                read.turnover.get(p, NOTHING),
            )
            for p in self._part.partitions
        ]
        now_ms = time.time_ns() // 1_000_000
        self._tables.append(cut_row(self._part.start, end, now_ms, servers))
        return self._combined(self._tables)

    def _combined(self, tables: Iterable[pa.Table]) -> pa.Table:
        return combine(pa.concat_tables(tables), self._options.window_ms)


def _rows_of(tables: Iterable[pa.Table]) -> int:
    return sum(map(len, tables))


def trim(options: SourceOptions, done: Cut) -> None:
    """Trim what was published, except for the retained time before it."""
    before_ms = done.end_ms - options.retention_ms
    positions = dict(zip(done.partitions, done.positions, strict=True))
    # Trimming is not urgent: what is away now is trimmed after the next batch.
    with outages_pass():
        open_log_reader(options).trim(positions, before_ms)
