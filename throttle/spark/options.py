"""What Spark is told of the trade log, and what one task is told to read of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import orjson
from pyspark.sql.datasource import InputPartition

from ingest.instrument_table.open_instrument_store import instruments_topic
from ingest.kafka.address import KafkaTopic
from ingest.tradelog.contract import Head, LogInfo
from throttle.contract import cut
from throttle.contract.cut import Cut
from throttle.spark.warmup import BACKLOG_WINDOWS
from throttle.window.open_batch import plan_after

if TYPE_CHECKING:
    # A task of Spark needs the options, too: it should not load what checks settings.
    from throttle.settings import SparkSettings, ThrottleSettings


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What the source needs to know, as it travels through Spark's string options.

    With a ``window_log`` the task that reads a window alone publishes it, as
    ``PublishOptions`` say, joined with the table in the topic ``instruments``, or in
    Redis. ``chain_key`` is hexadecimal.
    """

    redis_url: str
    namespace: str
    kafka: KafkaTopic | None
    margin_ms: int
    log_id: str
    partitions: int
    only: tuple[int, ...]
    created_ms: int
    decoder: str
    max_windows: int
    max_ahead_ms: int
    max_entry_bytes: int
    window_ms: int = 0
    retention_ms: int = 0
    initial_offset: str = ""
    job: str = ""
    owner: str = ""
    synthetic_live: int = 0
    synthetic_behind: int = 0
    manual_clock: bool = False
    live_tasks: int = 1
    backlog_tasks: int = 2
    series: str = ""
    sessions: str = ""
    schema_registry_url: str = ""
    window_log: int = 0
    calendars: tuple[str, str, str] = ("", "", "")
    instruments: KafkaTopic | None = None
    chain_key: str = field(default="", repr=False)
    speedups: bool = True

    def parts(
        self, partitions: tuple[int, ...], is_live: bool
    ) -> list[tuple[int, ...]]:
        """Return which partitions each task reads, of a live window or of a backlog."""
        tasks = min(self.live_tasks if is_live else self.backlog_tasks, len(partitions))
        return [partitions[n::tasks] for n in range(tasks)]

    def to_spark(self) -> dict[str, str]:
        """Encode for ``DataStreamReader.options``."""
        return {"source": orjson.dumps(self).decode()}

    @classmethod
    def from_spark(cls, options: Mapping[str, str]) -> "SourceOptions":
        """Decode what ``to_spark`` wrote."""
        values = orjson.loads(options["source"])
        for name in ("kafka", "instruments"):
            if values[name] is not None:
                values[name] = KafkaTopic.from_json(values[name])
        lists = {name: tuple(values[name]) for name in ("only", "calendars")}
        return cls(**{**values, **lists})


def log_options(
    settings: "SparkSettings", info: LogInfo, manual_clock: bool = False
) -> SourceOptions:
    """Return the options of any reader; tests turn a ``manual_clock`` by hand."""
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
        max_windows=settings.max_windows_per_batch,
        max_ahead_ms=settings.max_ahead_ms,
        max_entry_bytes=settings.max_entry_bytes,
        manual_clock=manual_clock,
        live_tasks=settings.live_tasks,
        backlog_tasks=settings.backlog_tasks,
        series=settings.series,
        sessions=settings.sessions,
        schema_registry_url=settings.schema_registry_url,
        speedups=settings.speedups,
    )


def source_options(
    settings: "ThrottleSettings",
    info: LogInfo,
    owner: str = "",
    manual_clock: bool = False,
) -> SourceOptions:
    """Return the options of a source that begins once ``owner`` has its job's lease."""
    return replace(
        log_options(settings, info, manual_clock),
        window_ms=settings.window_ms,
        retention_ms=settings.trade_log_retention_s * 1000,
        job=settings.job,
        owner=owner,
    )


def publishing_options(
    settings: "ThrottleSettings", info: LogInfo, owner: str = ""
) -> SourceOptions:
    """Return the options of a source whose tasks publish the windows they have."""
    return replace(
        source_options(settings, info, owner),
        window_log=settings.window_log,
        calendars=settings.calendars(),
        instruments=instruments_topic(settings),
        chain_key=settings.chain_key().hex(),
    )


def made_up_windows(
    options: SourceOptions, live: int, backlog: int = 0
) -> SourceOptions:
    """Return the options of a source of so many made-up batches.

    ``live`` ones have one window each, those of a ``backlog``, which follow, a few.
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
        initial_offset=orjson.dumps(plan_after(start).to_offset()).decode(),
    )


@dataclass(frozen=True)
class BatchRange(InputPartition):
    """What one task reads: some partitions of the log, from a cut to a boundary.

    ``is_window`` says that it is one window, all of it.
    """

    start: Cut
    end_ms: int
    partitions: tuple[int, ...]
    is_window: bool = False
