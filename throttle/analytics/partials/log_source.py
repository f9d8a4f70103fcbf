"""The trade log as a Spark streaming source of partial bars, for stateful queries.

Other than the throttle's source (``throttle/spark/source.py``) it plans a batch when
its boundary has passed, and an offset is a cut, with every position: what a batch reads
is then written down in Spark's checkpoint before it is read. A stateful query can be
taken up again by its checkpoint alone, whatever became of Redis.

For every query Spark starts several Python processes, and most need this file only:
what reads the log stands in ``partial_reader.py``.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import orjson
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.types import StructType

from throttle.analytics.partials.partial_bars import ARROW_SCHEMA
from throttle.analytics.partials.partial_rule import PartialRule
from throttle.contract.cut import Cut
from throttle.spark.options import SourceOptions
from throttle.spark.worker_daemon import quiet_hang_ups

FORMAT = "partialbars"

_SINCE = "since_ms"
"""Since when the query counts what was appended: in every offset, beside the cut."""

quiet_hang_ups(stays=True)


@dataclass(frozen=True, slots=True)
class PartialOptions:
    """What the source needs to know, as it travels through Spark's string options.

    ``rule`` says which partial bars are made and when a batch ends, ``start`` where a
    query begins that has no checkpoint.
    """

    log: SourceOptions
    rule: PartialRule
    start: str

    @classmethod
    def create(
        cls, log: SourceOptions, rule: PartialRule, start: str
    ) -> "PartialOptions":
        """Create them; series are left out of a product that keeps none."""
        return cls(log if rule.keeps_series else replace(log, series=""), rule, start)

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        rule = orjson.dumps(self.rule.to_object()).decode()
        return {**self.log.to_spark(), "rule": rule, "start": self.start}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "PartialOptions":
        """Decode what ``to_spark`` wrote."""
        rule = PartialRule.of_object(orjson.loads(options["rule"]))
        return cls(SourceOptions.from_spark(options), rule, options["start"])


@dataclass(frozen=True)
class CutRange(InputPartition):
    """What one task reads: some partitions of the log, from a cut to a cut.

    The query counts what was appended from ``since_ms`` on.
    """

    start: Cut
    end: Cut
    partitions: tuple[int, ...]
    since_ms: int = 0


class PartialBarsSource(DataSource):
    """``spark.readStream.format("partialbars")``: see ``partial_bars.ARROW_SCHEMA``."""

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the schema of ``partial_bars.py``."""
        return from_arrow_schema(ARROW_SCHEMA)

    def streamReader(self, schema: Any) -> "PartialBarsReader":
        """Create the reader that Spark keeps for the life of the query."""
        return PartialBarsReader(PartialOptions.from_spark(self.options))


class PartialBarsReader(DataSourceStreamReader):
    """Cuts on the driver, reads on the executors; keeps no state between calls."""

    def __init__(self, options: PartialOptions) -> None:
        self._options = options

    def initialOffset(self) -> dict[str, int]:
        """Return the cut from which a query starts that has no checkpoint."""
        from throttle.analytics.partials import partial_reader

        first = partial_reader.first_cut(self._options)
        is_whole = self._options.start == "earliest"
        return first.to_offset() | {_SINCE: 0 if is_whole else first.end_ms}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the cut of the next batch; ``start`` while there is none.

        Bounded by ``max_windows``, whatever the limit.
        """
        from throttle.analytics.partials import partial_reader

        previous = Cut.from_offset(start)
        cut = partial_reader.next_cut(self._options, previous)
        return cut.to_offset() | {_SINCE: start[_SINCE]}

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[CutRange]:
        """Plan the tasks: each reads partitions of its own."""
        first, last = Cut.from_offset(start), Cut.from_offset(end)
        is_live = last.end_ms - first.end_ms <= self._options.rule.batch_ms
        parts = self._options.log.parts(last.partitions, is_live)
        return [CutRange(first, last, part, int(end[_SINCE])) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the partial bars between two cuts, and a note of what was read."""
        from throttle.analytics.partials import partial_reader

        return partial_reader.read_partials(self._options, cast(CutRange, partition))
