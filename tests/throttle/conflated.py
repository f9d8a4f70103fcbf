"""Batches as Spark hands them over, grouped without Spark."""

from collections.abc import Sequence

import pyarrow as pa

from ingest.tradelog.contract import Chunk
from throttle.contract.cut import Cut
from throttle.contract.ledger import NOTHING
from throttle.window.checked_rows import trade_rows
from throttle.window.combine import combine
from throttle.window.conflate import LATEST
from throttle.window.control_rows import cut_row, read_row
from throttle.window.row_schema import FIRST, FOLDED
from throttle.window.turnover import of_all


def rows_between(
    start: Cut, end: Cut, chunks: Sequence[Chunk], max_ahead_ms: int
) -> pa.Table:
    """Return what the source reads: chunk p is what partition p has in between."""
    tables = [cut_row(start, end)]
    for partition, chunk in enumerate(chunks):
        span = start.end_ms, end.end_ms
        rows = trade_rows(chunk, partition, *span, max_ahead_ms)
        read = len(chunk), chunk.blanks, end, 0, of_all(rows).get(partition, NOTHING)
        tables += [rows, read_row(partition, *read)]
    return pa.concat_tables(tables)


def as_conflated(table: pa.Table, window_ms: int, is_live: bool = False) -> pa.Table:
    """Return what the transform makes of rows: it does what ``combine`` does.

    Those of a live window stay as they are.
    """
    combined = table if is_live else combine(table, window_ms)
    combined = combined.combine_chunks()
    window_us = window_ms * 1000
    stamps_us = combined["append_time"].cast(pa.int64()).to_pylist()
    ends = [(us // window_us + 1) * window_us for us in stamps_us]
    end = pa.array(ends, pa.timestamp("us", tz="UTC"))
    latest = [combined[name].combine_chunks() for name in LATEST]
    first = [combined[name].combine_chunks() for name in FIRST]
    return pa.table(
        {
            "window": pa.StructArray.from_arrays([end], ["end"]),
            "key": combined["key"],
            "partition": combined["partition"],
            "latest": pa.StructArray.from_arrays(latest, LATEST),
            "first": pa.StructArray.from_arrays(first, FIRST),
            **{name: combined[name] for name in FOLDED},
        }
    )
