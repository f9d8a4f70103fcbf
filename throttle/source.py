"""The trade log as a Spark streaming source that is cut at window ends.

Spark asks for the latest offset in a loop; the answer is the next cut, as soon as it
may be made. Spark writes it to its offset log before it reads anything, so a batch
that is run again reads the same entries.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, cast

import orjson
import pyarrow as pa
import redis
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit

from ingest.log import Chunk, Head, LogInfo, LogReader
from ingest.redis_log import RedisLogReader
from throttle import cut, rows
from throttle.cut import Cut
from throttle.hand_clock import HandClockLog
from throttle.lease import owner_of
from throttle.outage import create_client, is_transient
from throttle.settings import ThrottleSettings
from throttle.snapshot import Keys
from throttle.warmup import BACKLOG_WINDOWS, SyntheticLog

FORMAT = "tradelog"

# Spark cannot be interrupted while it waits for an answer: wait in short pieces.
_LONGEST_WAIT_S = 0.2

# A standby asks so often whether it may begin.
_ASK_AGAIN_S = 0.05

# Few big Arrow batches: each costs about a millisecond, a live window needs one.
_BATCH_ROWS = 40_000

# A backlog is read by so many tasks; a live window by one, more would cost more.
_BACKLOG_TASKS = 2


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the source needs to know, as it travels through Spark's string options."""

    redis_url: str
    namespace: str
    log_id: str
    partitions: int
    created_ms: int
    window_ms: int
    max_windows: int
    max_ahead_ms: int
    retention_ms: int
    initial_offset: str
    job: str
    owner: str
    synthetic_live: int
    synthetic_behind: int
    hand_clock: bool = False

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        return {"source": orjson.dumps(self).decode()}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Decode what ``to_spark`` wrote."""
        return cls(**orjson.loads(options["source"]))


def source_options(
    settings: ThrottleSettings,
    info: LogInfo,
    owner: str = "",
    hand_clock: bool = False,
) -> SourceOptions:
    """Return the options of a source that begins where its job's seat says.

    That is known once ``owner`` holds the job's lease; until then the source waits.
    ``hand_clock`` is for tests: the log's clock is then turned by hand.
    """
    return SourceOptions(
        redis_url=settings.redis_url,
        namespace=settings.namespace,
        log_id=info.log_id,
        partitions=info.partitions,
        created_ms=info.created_ms,
        window_ms=settings.window_ms,
        max_windows=settings.max_windows_per_batch,
        max_ahead_ms=settings.max_ahead_ms,
        retention_ms=settings.log_retention_s * 1000,
        initial_offset="",
        job=settings.job,
        owner=owner,
        synthetic_live=0,
        synthetic_behind=0,
        hand_clock=hand_clock,
    )


def made_up_windows(
    options: SourceOptions, live: int, backlog: int = 0
) -> SourceOptions:
    """Return the options of a source of so many made-up batches.

    First the live ones, of one window each, then those of a backlog, of a few windows.
    """
    head = Head(None, (0,) * options.partitions)
    start = cut.origin(head, options.created_ms, options.window_ms)
    return replace(
        options,
        synthetic_live=live,
        synthetic_behind=backlog * BACKLOG_WINDOWS,
        max_windows=BACKLOG_WINDOWS,
        initial_offset=orjson.dumps(start.to_offset()).decode(),
    )


class TradeLogSource(DataSource):
    """``spark.readStream.format("tradelog")``: one row per log entry (``rows.py``)."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of ``rows.py``."""
        return rows.SCHEMA

    def streamReader(self, schema: Any) -> "TradeLogReader":
        """Create the reader that Spark keeps for the life of the query."""
        return TradeLogReader(SourceOptions.from_spark(self.options))


@dataclass(frozen=True)
class BatchRange(InputPartition):
    """What one task reads: some partitions of the log, between two cuts."""

    start: Cut
    end: Cut
    partitions: tuple[int, ...]


class TradeLogReader(DataSourceStreamReader):
    """Cuts on the driver, reads on the executors; keeps no state between calls."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:
        """Return the cut a new query starts from, once its job may publish.

        A standby's query thereby is up and waits here: what is left to do at a
        take-over is a batch.
        """
        options = self._options
        if options.initial_offset:
            return dict(orjson.loads(options.initial_offset))
        client = create_client(options.redis_url)
        while (cut := _stored_cut(client, options)) is None:
            time.sleep(_ASK_AGAIN_S)
        return dict(orjson.loads(cut))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the next cut, waiting for it a moment; ``start`` if it is far off.

        Bounded by ``max_windows``, whatever the limit: a batch's memory must not
        grow with the backlog. While the log's server is away there is no cut.
        """
        try:
            return self._next_cut(Cut.from_offset(start)).to_offset()
        except redis.RedisError as error:
            if not is_transient(error):
                raise
            time.sleep(_LONGEST_WAIT_S)
            return start

    def _next_cut(self, previous: Cut) -> Cut:
        options, log = self._options, _open(self._options)
        clock_ms = log.clock_ms()
        wait_s = cut.wait_ms(previous.end_ms, clock_ms, options.window_ms) / 1000
        if wait_s > 0:
            time.sleep(min(wait_s, _LONGEST_WAIT_S))
            if wait_s > _LONGEST_WAIT_S:
                return previous
        end_ms = cut.next_end(
            previous.end_ms, clock_ms, options.window_ms, options.max_windows
        )
        made = cut.advance(previous, end_ms, log.tail(end_ms))
        return previous if made is None else made

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[BatchRange]:
        """Plan one task for a live window, two for a backlog."""
        first, last = Cut.from_offset(start), Cut.from_offset(end)
        is_live = last.end_ms - first.end_ms <= self._options.window_ms
        tasks = 1 if is_live else min(_BACKLOG_TASKS, self._options.partitions)
        return [
            BatchRange(first, last, tuple(range(n, self._options.partitions, tasks)))
            for n in range(tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows between two cuts, combined, with what was read and the cut."""
        part = cast(BatchRange, partition)
        ready, size = [], 0
        for rows_of_chunk in self._read_rows(part):
            ready.append(rows_of_chunk)
            size += len(rows_of_chunk)
            if size >= _BATCH_ROWS:
                yield from self._combined(ready)
                ready, size = [], 0
        yield from self._combined(ready)

    def _read_rows(self, part: BatchRange) -> Iterator[pa.Table]:
        start, end, log = part.start, part.end, _open(self._options)
        if 0 in part.partitions:
            yield rows.cut_row(start, end)
        for p in part.partitions:
            entries = 0
            for chunk in read_patiently(log, p, start.positions[p], end.positions[p]):
                entries += len(chunk)
                yield rows.trade_rows(
                    chunk, p, start.end_ms, self._options.max_ahead_ms
                )
            yield rows.read_row(p, entries, end)

    def _combined(self, tables: Sequence[pa.Table]) -> Iterator[pa.RecordBatch]:
        if tables:
            combined = rows.combine(pa.concat_tables(tables), self._options.window_ms)
            yield from combined.combine_chunks().to_batches()

    def commit(self, end: Mapping[str, Any]) -> None:
        """Trim what was published, except for the retained time before it."""
        done = Cut.from_offset(end)
        before_ms = done.end_ms - self._options.retention_ms
        # Trimming is not urgent: what is away now is trimmed after the next batch.
        try:
            _open(self._options).trim(done.positions, before_ms)
        except redis.RedisError as error:
            if not is_transient(error):
                raise


def read_patiently(
    log: LogReader, partition: int, after: int, upto: int
) -> Iterator[Chunk]:
    """Read on where reading broke off, for as long as the log's server is away."""
    while after < upto:
        try:
            for chunk in log.read(partition, after, upto):
                yield chunk
                after = chunk.positions[-1].as_py()
            return
        except redis.RedisError as error:
            if not is_transient(error):
                raise
            time.sleep(_LONGEST_WAIT_S)


def _stored_cut(client: redis.Redis, options: SourceOptions) -> bytes | None:
    """Return where the job goes on, None unless its lease is this source's."""
    keys = Keys(options.namespace)
    try:
        with client.pipeline(transaction=True) as pipe:
            pipe.get(keys.lease(options.job))
            pipe.hget(keys.meta, f"cut:{options.job}")
            holder, cut = pipe.execute()
    except redis.RedisError as error:
        if not is_transient(error):
            raise
        return None
    is_ours = holder is not None and owner_of(holder) == options.owner
    return cast("bytes | None", cut) if is_ours else None


@lru_cache(maxsize=4)
def _open(options: SourceOptions) -> LogReader:
    # Once per process: Spark builds readers anew for every task of a worker.
    info = LogInfo(options.log_id, options.partitions, options.created_ms)
    live, behind = options.synthetic_live, options.synthetic_behind
    if live or behind:
        return SyntheticLog(info, options.window_ms, live, behind)
    kind = HandClockLog if options.hand_clock else RedisLogReader
    return kind(create_client(options.redis_url), options.namespace, info)
