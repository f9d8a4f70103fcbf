"""What both jobs optimise, run with and without it over the same made-up trades.

Each way of a comparison returns the same rows. Its time is from checked trades in
memory to rows in memory; what is common to all ways, such as reading the log, is left
out.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ingest.tradelog.contract import LogInfo
from throttle.analytics.movers.movers_product import MOVERS
from throttle.analytics.movers.recent_panes import SCHEMA as PANES
from throttle.analytics.movers.recent_panes import RecentPanes
from throttle.analytics.partials import partial_bars
from throttle.analytics.product_query import PROVIDER, conf_of, tell_session
from throttle.analytics.tumbling_bars import aggregates, selected
from throttle.settings import AnalyticsSettings, ThrottleSettings
from throttle.spark.options import log_options
from throttle.spark.own_session import own_spark
from throttle.spark.query import start_stream, stop_query
from throttle.spark.sink import nodes_named
from throttle.spark.task_log import CheckedPieces
from throttle.spark.warmup import WARMUP_TRADES, SyntheticLog, made_up_instruments
from throttle.window.combine import combine
from throttle.window.conflate import create_conflate
from throttle.window.instrument_columns import InstrumentColumns

WINDOWS = 10
"""Windows of the recording, of ``WARMUP_TRADES`` trades each."""

RUNS = 3
"""Runs of each way whose median is told, after one that is not."""

# It tells how large a state is; the store of the jobs tells how much is cached of it.
_IN_MEMORY = (
    "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
)


class CompareFailed(RuntimeError):
    """Spark did not run a way to its end; the message says why."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one way cost: its time, rows that tasks exchanged, and Spark's state."""

    seconds: float
    exchanged: int
    state_updates: int = 0
    state_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Way:
    """One way of a comparison: what it does, and the medians of its runs."""

    comparison: str
    does: str
    figures: Figures


def compare(
    settings: ThrottleSettings, windows: int = WINDOWS, runs: int = RUNS
) -> list[Way]:
    """Start Spark as the job does, run every way, and return what each cost.

    Neither Redis nor a checkpoint of a job is touched. Raises CompareFailed.
    """
    with own_spark(settings, CompareFailed) as (spark, scratch):
        return list(ways(spark, settings, scratch, windows, runs))


def ways(
    spark: SparkSession,
    settings: ThrottleSettings,
    scratch: Path,
    windows: int,
    runs: int,
) -> Iterator[Way]:
    """Run every way over ``windows`` windows of trades; yield what each cost."""
    pieces = recorded(settings, windows)
    measured: dict[tuple[str, str], Callable[[], Figures]] = {
        (comparison, does): partial(_collected, run)
        for comparison, by_name in groupings(spark, settings, pieces).items()
        for does, run in by_name.items()
    }
    hopping = "hopping windows of movers"
    for does, run in _spans(spark, pieces, scratch).items():
        measured[hopping, does] = run
    for (comparison, does), measure in measured.items():
        measure()
        yield Way(comparison, does, _medians([measure() for _ in range(runs)]))


def to_table(measured: list[Way], windows: int = WINDOWS) -> str:
    """Write the figures, a way a line under its comparison."""
    head = f"{windows * WARMUP_TRADES:,} made-up trades, {windows} windows"
    lines = [f"{head:<58}{'time':>9}{'exchanged':>12}{'state':>21}"]
    titles: set[str] = set()
    for way in measured:
        if way.comparison not in titles:
            titles.add(way.comparison)
            lines.append(way.comparison)
        cost = way.figures
        state = (
            f"{cost.state_updates:,} rows {cost.state_bytes / 1e6:.1f} MB"
            if cost.state_updates
            else "none"
        )
        lines.append(
            f"  {way.does:<56}{cost.seconds:>7.2f} s{cost.exchanged:>12,}{state:>21}"
        )
    return "\n".join(lines)


def recorded(settings: ThrottleSettings, windows: int) -> list[pa.Table]:
    """Return checked trades in pieces as a task reads them, a row a trade."""
    window_ms = settings.window_ms
    # One partition, in which each instrument trades three times a window.
    info = LogInfo("made-up", 1, 1_790_000_000_000)
    start_ms = info.created_ms // window_ms * window_ms
    end_ms = start_ms + windows * window_ms
    log = SyntheticLog(info, window_ms, live=0, behind=windows)
    upto = log.positions_at(end_ms)
    chunks = (piece for piece in log.read({p: (0, upto[p]) for p in upto}))
    options = replace(
        log_options(settings, info), decoder="", series="", window_ms=window_ms
    )
    checked = CheckedPieces(options, start_ms, end_ms, every_trade=True)
    return [_timed(rows) for rows in checked.read(chunks, is_backlog=False)]


def _timed(rows: pa.Table) -> pa.Table:
    """Return rows that were traded when they were appended, not all at once."""
    place = rows.column_names.index("time")
    return rows.set_column(place, "time", rows["append_time"].cast(pa.int64()))


def groupings(
    spark: SparkSession, settings: ThrottleSettings, pieces: list[pa.Table]
) -> dict[str, dict[str, Callable[[], DataFrame]]]:
    """Return the ways of the throttle's transform, as frames to be collected."""
    window_ms = settings.window_ms
    conflate = create_conflate(window_ms)

    def combined() -> DataFrame:
        return _frame(spark, [combine(piece, window_ms) for piece in pieces])

    table = spark.createDataFrame(InstrumentColumns(made_up_instruments()).places)
    return {
        "latest of each instrument and window": {
            "combined where it is read, then grouped": lambda: conflate(
                combined(), False, None
            ),
            "grouped by Spark, combined in its tasks": lambda: conflate(
                _frame(spark, pieces), False, None
            ),
            "every trade exchanged, then grouped": lambda: conflate(
                _frame(spark, pieces).repartition(2, "key"), False, None
            ),
        },
        "join with the instrument table": {
            "broadcast: trades stay where they are": lambda: conflate(
                combined(), True, F.broadcast(table)
            ),
            "sorted and merged": lambda: conflate(
                combined(), True, table.hint("merge")
            ),
        },
    }


def _frame(spark: SparkSession, tables: list[pa.Table]) -> DataFrame:
    return spark.createDataFrame(pa.concat_tables(tables))


def _collected(frame: Callable[[], DataFrame]) -> Figures:
    began_s = time.perf_counter()
    rows = frame()
    rows.toArrow()
    plan = rows._jdf.queryExecution().executedPlan()
    return Figures(time.perf_counter() - began_s, _exchanged(plan))


def _spans(
    spark: SparkSession, pieces: list[pa.Table], scratch: Path
) -> dict[str, Callable[[], Figures]]:
    """Return the ways of adding up the spans of movers, each a batch with a state."""
    settings = AnalyticsSettings()
    rule = MOVERS.rule(settings)
    span_ms, every_ms = settings.movers_span_s * 1_000, settings.movers_every_s * 1_000
    kept_ms = MOVERS.kept_ms(settings)
    conf = {**conf_of(settings, MOVERS), PROVIDER: _IN_MEMORY}
    trades = [partial_bars.trades_of(piece)[0] for piece in pieces]
    partials = partial_bars.combine([rule.partials(piece)[0] for piece in trades])
    folder = scratch / "partials"
    folder.mkdir()
    pq.write_table(partial_bars.to_spark(partials), folder / "0.parquet")
    schema = spark.read.parquet(folder.as_uri()).schema

    def panes(rows: DataFrame) -> DataFrame:
        return MOVERS.windows(rows, settings, kept_ms)

    def hops(rows: DataFrame) -> DataFrame:
        window = F.window("at", f"{span_ms} milliseconds", f"{every_ms} milliseconds")
        marked = rows.withWatermark("at", f"{kept_ms} milliseconds")
        grouped = marked.groupBy(window.alias("window"), "isin")
        return selected(grouped.agg(*aggregates()))

    def run(windows: Callable[[DataFrame], DataFrame], adds_up: bool) -> Figures:
        rows = spark.readStream.schema(schema).parquet(folder.as_uri())
        tell_session(spark, conf)
        sink = _Kept()
        checkpoint = scratch / f"spans-{time.monotonic_ns()}"
        query = start_stream(windows(rows), sink, checkpoint.as_uri(), "update")
        query.processAllAvailable()
        progress = query.lastProgress
        if progress is None:
            raise CompareFailed("Spark says nothing of the batch that it ran")
        plan = query._jsq.streamingQuery().lastExecution().executedPlan()
        exchanged = _exchanged(plan)
        stop_query(query, sink)
        began_s = time.perf_counter()
        if adds_up:
            end_ms = max(sink.rows["end_ms"].to_pylist())
            RecentPanes(span_ms, PANES.empty_table()).span(sink.rows, end_ms)
        seconds = time.perf_counter() - began_s
        seconds += progress["durationMs"]["triggerExecution"] / 1_000
        state = progress["stateOperators"][0]
        return Figures(
            seconds, exchanged, state["numRowsUpdated"], state["memoryUsedBytes"]
        )

    return {
        "panes in the state, added up in the sink": lambda: run(panes, True),
        "every pane in every span that holds it": lambda: run(hops, False),
    }


class _Kept:
    """A sink that keeps the rows of the one batch that has some."""

    error: Exception | None = None
    is_open = False

    def __init__(self) -> None:
        self.rows = pa.table({})

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Keep its rows."""
        self.rows = frame.toArrow()


def _exchanged(plan: Any) -> int:
    """Return how many rows the shuffles of a plan that was run have written."""
    return sum(
        node.metrics().apply("shuffleRecordsWritten").value() + _exchanged(node.child())
        for node in nodes_named(plan, "ShuffleExchangeExec")
    )


def _medians(runs: list[Figures]) -> Figures:
    return replace(runs[-1], seconds=median(run.seconds for run in runs))
