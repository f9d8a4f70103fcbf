"""The trade log as a Spark streaming source that is cut at window ends.

Spark asks for the latest offset in a loop; the answer is the next cut, as soon as it
may be made. Spark writes it to its offset log before it reads anything, so a batch
that is run again reads the same entries.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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

from ingest.log import LogInfo, LogReader
from ingest.redis_log import RedisLogReader
from throttle import cut, rows
from throttle.cut import Cut
from throttle.warmup import SyntheticLog

FORMAT = "tradelog"

# Spark cannot be interrupted while it waits for an answer: wait in short pieces.
_LONGEST_WAIT_S = 0.2

_BATCH_ROWS = 8_192


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
    synthetic_windows: int

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        return {"source": orjson.dumps(self).decode()}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Decode what ``to_spark`` wrote."""
        return cls(**orjson.loads(options["source"]))


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
        """Return the cut a new query starts from; the job chose and stored it."""
        return dict(orjson.loads(self._options.initial_offset))

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the next cut, waiting for it a moment; ``start`` if it is far off.

        Bounded by ``max_windows``, whatever the limit: a batch's memory must not
        grow with the backlog.
        """
        options, log = self._options, _open(self._options)
        previous = Cut.from_offset(start)
        clock_ms = log.clock_ms()
        wait_s = cut.wait_ms(previous.end_ms, clock_ms, options.window_ms) / 1000
        if wait_s > 0:
            time.sleep(min(wait_s, _LONGEST_WAIT_S))
            if wait_s > _LONGEST_WAIT_S:
                return start
        end_ms = cut.next_end(
            previous.end_ms, clock_ms, options.window_ms, options.max_windows
        )
        tail = log.tail(end_ms)
        made = cut.advance(previous, end_ms, tail.clock_ms, tail.positions)
        return start if made is None else made.to_offset()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[BatchRange]:
        """Plan one task that reads all partitions of the log.

        A window holds a few thousand trades: more tasks cost more than they save.
        """
        every = tuple(range(self._options.partitions))
        return [BatchRange(Cut.from_offset(start), Cut.from_offset(end), every)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the cut row, then the entries between the two cuts."""
        part = cast(BatchRange, partition)
        start, end = part.start, part.end
        log, max_ahead_ms = _open(self._options), self._options.max_ahead_ms
        # Few big batches: each costs about a millisecond, a live window needs one.
        ready = [rows.cut_row(start, end)]
        for p in part.partitions:
            for entries in log.read(p, start.positions[p], end.positions[p]):
                ready += [
                    rows.trade_row(entry, p, start.end_ms, max_ahead_ms)
                    for entry in entries
                ]
                if len(ready) >= _BATCH_ROWS:
                    yield rows.to_arrow(ready)
                    ready = []
        if ready:
            yield rows.to_arrow(ready)

    def commit(self, end: Mapping[str, Any]) -> None:
        """Trim what was published, except for the retained time before it."""
        done = Cut.from_offset(end)
        before_ms = done.end_ms - self._options.retention_ms
        _open(self._options).trim(done.positions, before_ms)


@lru_cache(maxsize=4)
def _open(options: SourceOptions) -> LogReader:
    # Once per process: Spark builds readers anew for every task of a worker.
    info = LogInfo(options.log_id, options.partitions, options.created_ms)
    if options.synthetic_windows:
        return SyntheticLog(info, options.window_ms, options.synthetic_windows)
    client = redis.Redis.from_url(options.redis_url)
    return RedisLogReader(client, options.namespace, info)
