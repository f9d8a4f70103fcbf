"""The trade log as a Spark streaming source of partial bars, for stateful queries.

Other than the throttle's source (``throttle/spark/source.py``) it plans a batch when
its boundary has passed, and an offset is a cut, with every position: what a batch reads
is then written down in Spark's checkpoint before it is read. A stateful query can be
taken up again by its checkpoint alone, whatever became of Redis.

For every query Spark starts several Python processes, and most need this file only:
what reads the log stands in ``partial_reader.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import orjson
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit

from throttle.analytics.partial_bars import SCHEMA
from throttle.contract.cut import Cut
from throttle.spark.options import SourceOptions
from throttle.spark.worker_daemon import quiet_hang_ups

FORMAT = "partialbars"

quiet_hang_ups(stays=True)


@dataclass(frozen=True, slots=True)
class PartialOptions:
    """What the source needs to know, as it travels through Spark's string options.

    A batch ends ``close_after_ms`` after a multiple of ``batch_ms``. ``product`` says
    which partial bars are made: of ``bars_ms``, amended for ``lateness_ms``; of movers,
    in which a trade counts for ``span_ms``; of bursts with gaps of ``gap_ms``; or for
    moves of each trade by itself.
    ``start`` says where a query begins that has no checkpoint.
    """

    log: SourceOptions
    product: str
    batch_ms: int
    close_after_ms: int
    bars_ms: int
    lateness_ms: int
    span_ms: int
    gap_ms: int
    start: str

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        own = {n: getattr(self, n) for n in self.__slots__ if n != "log"}
        return {**self.log.to_spark(), "partials": orjson.dumps(own).decode()}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "PartialOptions":
        """Decode what ``to_spark`` wrote."""
        log = SourceOptions.from_spark(options)
        return cls(log, **orjson.loads(options["partials"]))


@dataclass(frozen=True)
class CutRange(InputPartition):
    """What one task reads: some partitions of the log, from a cut to a cut."""

    start: Cut
    end: Cut
    partitions: tuple[int, ...]


class PartialBarsSource(DataSource):
    """``spark.readStream.format("partialbars")``: see ``partial_bars.SCHEMA``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> str:
        """Return the schema of ``partial_bars.py``."""
        return SCHEMA

    def streamReader(self, schema: Any) -> "PartialBarsReader":
        """Create the reader that Spark keeps for the life of the query."""
        return PartialBarsReader(PartialOptions.from_spark(self.options))


class PartialBarsReader(DataSourceStreamReader):
    """Cuts on the driver, reads on the executors; keeps no state between calls."""

    def __init__(self, options: PartialOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:
        """Return the cut from which a query starts that has no checkpoint."""
        from throttle.analytics import partial_reader

        return partial_reader.first_cut(self._options).to_offset()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the cut of the next batch; ``start`` while there is none.

        Bounded by ``max_windows``, whatever the limit.
        """
        from throttle.analytics import partial_reader

        previous = Cut.from_offset(start)
        return partial_reader.next_cut(self._options, previous).to_offset()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[CutRange]:
        """Plan the tasks: each reads partitions of its own."""
        options = self._options
        first, last = Cut.from_offset(start), Cut.from_offset(end)
        is_live = last.end_ms - first.end_ms <= options.batch_ms
        wanted = options.log.live_tasks if is_live else options.log.backlog_tasks
        tasks = min(wanted, len(last.partitions))
        return [CutRange(first, last, last.partitions[n::tasks]) for n in range(tasks)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the partial bars between two cuts, and a note of what was read."""
        from throttle.analytics import partial_reader

        return partial_reader.read_partials(self._options, cast(CutRange, partition))
