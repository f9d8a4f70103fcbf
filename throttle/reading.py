"""Reading the trade log for Spark: where to begin, the next cut, the rows between two.

What ``source.py`` says to Spark, said to the log's server. While that is away there is
no cut, and a batch that was begun is read on when it is back.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import cast

import orjson
import pyarrow as pa
import redis

from ingest.log import Chunk, LogInfo, LogReader, Ranges
from ingest.redis_log import RedisLogReader
from throttle import cut, rows
from throttle.cut import Cut, between
from throttle.decoder import find_decoder
from throttle.hand_clock import HandClockLog
from throttle.lease import owner_of
from throttle.outage import AWAY, create_client, is_transient
from throttle.snapshot import Keys
from throttle.source import BatchRange, SourceOptions
from throttle.tradelog import kafka_reader
from throttle.warmup import SyntheticLog

# Spark cannot be interrupted while it waits for an answer: wait in short pieces.
_LONGEST_WAIT_S = 0.2

# A standby asks so often whether it may begin.
_ASK_AGAIN_S = 0.05

# Chunks of many partitions are small, and checking one costs as much as checking all.
_CHECKED_AT_ONCE = 10_000

# Few big Arrow batches: each costs about a millisecond, a live window needs one.
_BATCH_ROWS = 40_000


class SparkEnded(RuntimeError):
    """The process that asked has gone: nobody waits for the answer."""


def first_offset(options: SourceOptions) -> dict[str, int]:
    """Return the cut to begin with, waiting until the job holds its lease.

    Raises SparkEnded.
    """
    if options.initial_offset:
        return dict(orjson.loads(options.initial_offset))
    client, parent = create_client(options.redis_url), os.getppid()
    while (stored := _stored_cut(client, options)) is None:
        time.sleep(_ASK_AGAIN_S)
        if os.getppid() != parent:
            raise SparkEnded("Spark's JVM has ended")
    return dict(orjson.loads(stored))


def _stored_cut(client: redis.Redis, options: SourceOptions) -> bytes | None:
    """Return where the job goes on, None unless its lease is this source's."""
    keys = Keys(options.namespace)
    try:
        with client.pipeline(transaction=True) as pipe:
            pipe.get(keys.lease(options.job))
            pipe.hget(keys.meta, f"cut:{options.job}")
            holder, stored = pipe.execute()
    except redis.RedisError as error:
        if not is_transient(error):
            raise
        return None
    is_ours = holder is not None and owner_of(holder) == options.owner
    return cast("bytes | None", stored) if is_ours else None


def next_cut(options: SourceOptions, previous: Cut) -> Cut:
    """Return the next cut, waiting for it a moment; ``previous`` if it is far off."""
    try:
        return _next_cut(options, previous)
    except AWAY as error:
        if not is_transient(error):
            raise
        time.sleep(_LONGEST_WAIT_S)
        return previous


def _next_cut(options: SourceOptions, previous: Cut) -> Cut:
    log = _open(options)
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


def read_batches(options: SourceOptions, part: BatchRange) -> Iterator[pa.RecordBatch]:
    """Yield the rows between two cuts, combined, with what was read and the cut."""
    ready, size = [], 0
    for rows_of_chunk in _read_rows(options, part):
        ready.append(rows_of_chunk)
        size += len(rows_of_chunk)
        if size >= _BATCH_ROWS:
            yield from _combined(ready, options.window_ms)
            ready, size = [], 0
    yield from _combined(ready, options.window_ms)


def _read_rows(options: SourceOptions, part: BatchRange) -> Iterator[pa.Table]:
    start, end = part.start, part.end
    decode = find_decoder(options.decoder)
    if part.partitions[0] == end.partitions[0]:
        yield rows.cut_row(start, end)

    def check(chunks: Sequence[tuple[int, Chunk]]) -> pa.Table:
        span = start.end_ms, end.end_ms
        return rows.trade_rows(
            *rows.joined(chunks), *span, options.max_ahead_ms, decode
        )

    entries, blanks = Counter[int](), Counter[int]()
    ready: list[tuple[int, Chunk]] = []
    ranges = between(start, end, part.partitions)
    for p, chunk in read_patiently(_open(options), ranges):
        entries[p] += len(chunk)
        blanks[p] += chunk.blanks
        ready.append((p, chunk))
        if sum(len(one) for _, one in ready) >= _CHECKED_AT_ONCE:
            yield check(ready)
            ready = []
    if ready:
        yield check(ready)
    for p in part.partitions:
        yield rows.read_row(p, entries[p], blanks[p], end)


def _combined(tables: Sequence[pa.Table], window_ms: int) -> Iterator[pa.RecordBatch]:
    if tables:
        combined = rows.combine(pa.concat_tables(tables), window_ms)
        yield from combined.combine_chunks().to_batches()


def read_patiently(log: LogReader, ranges: Ranges) -> Iterator[tuple[int, Chunk]]:
    """Read on where reading broke off, for as long as the log's server is away."""
    left = dict(ranges)
    while left:
        try:
            for partition, chunk in log.read(left.copy()):
                yield partition, chunk
                left[partition] = chunk.upto, left[partition][1]
            return
        except AWAY as error:
            if not is_transient(error):
                raise
            left = {
                p: (after, upto) for p, (after, upto) in left.items() if after < upto
            }
            time.sleep(_LONGEST_WAIT_S)


def trim(options: SourceOptions, done: Cut) -> None:
    """Trim what was published, except for the retained time before it."""
    before_ms = done.end_ms - options.retention_ms
    positions = dict(zip(done.partitions, done.positions, strict=True))
    # Trimming is not urgent: what is away now is trimmed after the next batch.
    try:
        _open(options).trim(positions, before_ms)
    except AWAY as error:
        if not is_transient(error):
            raise


@lru_cache(maxsize=4)
def _open(options: SourceOptions) -> LogReader:
    # Once per process: Spark builds readers anew for every task of a worker.
    info = LogInfo(options.log_id, options.partitions, options.created_ms)
    live, behind = options.synthetic_live, options.synthetic_behind
    if live or behind:
        return SyntheticLog(info, options.window_ms, live, behind)
    if options.kafka is not None:
        return kafka_reader(options.kafka, info, options.only, options.margin_ms)
    kind = HandClockLog if options.hand_clock else RedisLogReader
    client = create_client(options.redis_url)
    return kind(client, options.namespace, info, options.only)
