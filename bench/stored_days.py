"""An archive of many days, quickly made: bars of each minute, and windows' rows."""

import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa

from archive.contract.segment import Segment
from archive.parquet.bar_table import BARS, BATCHES, PRICES, SUMS, StoredBars
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import ROWS, WINDOWS, StoredTables

EPOCH = "stored"
DAY_MS, MINUTE_MS, WINDOW_MS = 86_400_000, 60_000, 2_000


def store_days(
    root: Path, isins: Sequence[str], days: int, minutes: int, windows: int
) -> None:
    """Store the ``days`` before today: of each instrument so many bars and rows a day.

    Of windows there are the rows alone, as histories need.
    """
    sink = ParquetSink(root, 2**50, 0)
    sink.open()
    today_ms = time.time_ns() // 1_000_000 // DAY_MS * DAY_MS
    for day in range(days):
        begin_ms = today_ms - (days - day) * DAY_MS
        ends = range(
            begin_ms + WINDOW_MS, begin_ms + (windows + 1) * WINDOW_MS, WINDOW_MS
        )
        first = 1 + day * windows
        segment = Segment(ends[0], first, first + windows - 1, EPOCH, ends[0], ends[-1])
        rows = _table(
            ROWS, isins, {"window": ends, "offset": range(first, first + windows)}
        )
        sink.store(segment, StoredTables(WINDOWS.empty_table(), rows, (), 0))
        starts = range(begin_ms, begin_ms + minutes * MINUTE_MS, MINUTE_MS)
        bounds = starts[0] + MINUTE_MS, starts[-1] + MINUTE_MS
        segment = Segment(bounds[0], day, day, EPOCH, *bounds)
        bars = _table(BARS, isins, {"start": starts})
        sink.store(segment, StoredBars(bars, BATCHES.empty_table()))
    sink.close()


def _table(
    schema: pa.Schema, isins: Sequence[str], each: dict[str, Sequence[int]]
) -> pa.Table:
    """Return the same lines of every instrument; ``each`` are the columns of one."""
    count = len(next(iter(each.values())))
    fixed = {
        **dict.fromkeys(("price", "size", *PRICES, *SUMS), Decimal("199500")),
        **dict.fromkeys(("price_text", "size_text"), "199500"),
        **{"epoch": EPOCH, "width_ms": MINUTE_MS, "trades": 4},
        **{"revision": 0, "number": 1, "time": 0, "seq": 0, "position": 0},
        **{"fields": None, "listed": False},
    }
    columns = []
    for field in schema:
        if field.name == "isin":
            names = pa.array(sorted(isins), pa.string())
            column = names.take(
                pa.array([n for n in range(len(isins)) for _ in range(count)])
            )
        elif field.name in each:
            column = pa.array([*each[field.name]] * len(isins), pa.int64()).cast(
                field.type
            )
        else:
            value = pa.scalar(fixed.get(field.name), field.type)
            column = pa.repeat(value, count * len(isins))
        columns.append(column)
    return pa.table(columns, schema=schema)
