"""The trade log as a Spark streaming source that is cut at window ends.

Spark asks for the latest offset in a loop; the answer is the next cut, as soon as it
may be made. Spark writes it to its offset log before it reads anything, so a batch
that is run again reads the same entries.

For every query Spark starts half a dozen Python processes, one after the other, and
most need this file only. What reads the log stands in ``reading.py``: loading it
takes a second, and only those that read do so.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import orjson
import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadLimit

from ingest.kafka_address import KafkaTopic
from ingest.log import Head, LogInfo
from throttle import cut, rows
from throttle.cut import Cut
from throttle.warmup import BACKLOG_WINDOWS

if TYPE_CHECKING:
    from throttle.settings import ThrottleSettings

FORMAT = "tradelog"


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the source needs to know, as it travels through Spark's string options."""

    redis_url: str
    namespace: str
    kafka: KafkaTopic | None
    margin_ms: int
    log_id: str
    partitions: int
    only: tuple[int, ...]
    created_ms: int
    decoder: str
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
    live_tasks: int = 1
    backlog_tasks: int = 2

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        return {"source": orjson.dumps(self).decode()}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Decode what ``to_spark`` wrote."""
        values = orjson.loads(options["source"])
        if values["kafka"] is not None:
            values["kafka"] = KafkaTopic.from_json(values["kafka"])
        return cls(**{**values, "only": tuple(values["only"])})


def source_options(
    settings: "ThrottleSettings",
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
        kafka=settings.topic(),
        margin_ms=settings.kafka_margin_ms,
        log_id=info.log_id,
        partitions=info.partitions,
        only=settings.only(),
        created_ms=info.created_ms,
        decoder=settings.decoder,
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
        live_tasks=settings.live_tasks,
        backlog_tasks=settings.backlog_tasks,
    )


def made_up_windows(
    options: SourceOptions, live: int, backlog: int = 0
) -> SourceOptions:
    """Return the options of a source of so many made-up batches.

    First the live ones, of one window each, then those of a backlog, of a few windows.
    """
    zeros, partitions = (0,) * options.partitions, tuple(range(options.partitions))
    head = Head(None, partitions, zeros, zeros)
    start = cut.origin(head, options.created_ms, options.window_ms)
    return replace(
        options,
        decoder="",
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
        from throttle import reading

        return reading.first_offset(self._options)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Return the next cut, waiting for it a moment; ``start`` if it is far off.

        Bounded by ``max_windows``, whatever the limit: a batch's memory must not
        grow with the backlog. While the log's server is away there is no cut.
        """
        from throttle import reading

        return reading.next_cut(self._options, Cut.from_offset(start)).to_offset()

    def partitions(
        self, start: Mapping[str, Any], end: Mapping[str, Any]
    ) -> Sequence[BatchRange]:
        """Plan the tasks of a live window or of a backlog.

        Each reads partitions of its own.
        """
        first, last = Cut.from_offset(start), Cut.from_offset(end)
        options = self._options
        is_live = last.end_ms - first.end_ms <= options.window_ms
        wanted = options.live_tasks if is_live else options.backlog_tasks
        tasks = min(wanted, len(last.partitions))
        return [
            BatchRange(first, last, last.partitions[n::tasks]) for n in range(tasks)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows between two cuts, combined, with what was read and the cut."""
        from throttle import reading

        return reading.read_batches(self._options, cast(BatchRange, partition))

    def commit(self, end: Mapping[str, Any]) -> None:
        """Trim what was published, except for the retained time before it."""
        from throttle import reading

        reading.trim(self._options, Cut.from_offset(end))
