"""The trade log as a Spark streaming source that is cut at window ends.

Spark asks for the latest offset in a loop; the answer is where the next batch begins
and the boundary at which it ends (``BatchPlan``). A live window is planned while it is
open: its tasks read while trades come, and make the cut once its end has passed.

For every query Spark starts half a dozen Python processes, one after the other, and
most need this file only. What reads the log stands in ``reader.py``: loading it
takes a second, and only those that read do so.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit

from throttle.spark.options import BatchRange, SourceOptions
from throttle.spark.worker_daemon import quiet_hang_ups
from throttle.window import row_schema
from throttle.window.open_batch import BatchPlan

FORMAT = "tradelog"

# This file is loaded by every process of Spark's that has to do with the source.
quiet_hang_ups()


class TradeLogSource(DataSource):
    """``spark.readStream.format("tradelog")``: a row per entry (``row_schema.py``)."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of ``row_schema.py``."""
        return row_schema.SCHEMA

    def streamReader(self, schema: Any) -> "TradeLogReader":
        """Create the reader that Spark keeps for the life of the query."""
        return TradeLogReader(SourceOptions.from_spark(self.options))


class TradeLogReader(DataSourceStreamReader):
    """Cuts on the driver, reads on the executors; keeps no state between calls."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:
        """Return the cut a new query starts from; a standby's waits here, and is up."""
        from throttle.spark import reader

        return reader.first_offset(self._options)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the plan of the next batch; ``start`` while Redis is away.

        Whatever the limit, ``max_windows`` bounds it, and so a batch's memory.
        """
        from throttle.spark import reader

        planned = reader.next_plan(self._options, BatchPlan.from_offset(start))
        return planned.to_offset()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[BatchRange]:
        """Plan the tasks of a window or a backlog: each reads partitions of its own."""
        plan, options = BatchPlan.from_offset(end), self._options
        is_live = plan.end_ms - plan.start.end_ms <= options.window_ms
        parts = options.parts(plan.partitions, is_live)
        is_window = is_live and len(parts) == 1
        return [BatchRange(plan.start, plan.end_ms, part, is_window) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows up to a boundary, combined, with what was read and the cut."""
        from throttle.spark import reader

        return reader.read_batches(self._options, cast(BatchRange, partition))

    def commit(self, end: Mapping[str, Any]) -> None:
        """Trim what the batch before has published, except for the retained time."""
        from throttle.spark import reader

        reader.trim(self._options, BatchPlan.from_offset(end).start)
