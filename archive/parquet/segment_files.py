"""The files of a segment: written at once, or merged from those of others."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.contract.segment import Product
from archive.parquet.bar_table import BAR_ORDER, BARS, newest_bars
from archive.parquet.tables import ROWS, SORTED_BY, WINDOWS

WINDOWS_FILE, ROWS_FILE = "windows.parquet", "rows.parquet"
BARS_FILE = "bars.parquet"

ROWS_A_GROUP = 65_536
"""Rows of a group: one issue's day is in one or two of them, so little is read."""

WINDOWS_A_GROUP = 16
"""Windows of a group: as many as are looked at at a time."""

BARS_A_GROUP = 16_384
"""Bars of a group: one issue's day is in one or two of them."""

LEVEL, FINAL_LEVEL = 3, 9
"""How hard it is tried to make rows small: during a day, and once it is over."""

WINDOWS_LEVEL = 1
"""Windows are columns of digits: higher levels make them larger."""

PAGE_BYTES = 8_388_608
"""A group of windows is compressed as a whole."""

# As dictionaries: what repeats within an issue's rows.
_GROWING = ("offset", "position", "seq", "time")
_REPEATED = sorted({*ROWS.names} - {*_GROWING, "fields"})


class SegmentFiles(Protocol):
    """How the segments of one product are written. Methods raise OSError.

    ``write`` writes the files of a segment into an empty folder, ``merge`` those of a
    segment that holds others, in their order; what ``is_final`` is made as small as
    can be. A few groups of each file are in memory at a time.
    """

    @property
    def product(self) -> Product: ...

    def write(self, folder: Path, tables: Any) -> None: ...

    def merge(
        self, sources: Sequence[Path], folder: Path, *, is_final: bool
    ) -> None: ...


class WindowFiles:
    """Of windows (``StoredTables``): two files, of windows and of their rows."""

    product: Product = "windows"

    def write(self, folder: Path, tables: Any) -> None:
        """Write the files of a segment."""
        with _windows_writer(folder) as writer:
            writer.write_table(tables.windows, row_group_size=WINDOWS_A_GROUP)
        with _rows_writer(folder) as writer:
            writer.write_table(tables.rows, row_group_size=ROWS_A_GROUP)

    def merge(self, sources: Sequence[Path], folder: Path, *, is_final: bool) -> None:
        """Write the files of a segment that holds those of others."""
        with _windows_writer(folder) as writer:
            for source in sources:
                with pq.ParquetFile(source / WINDOWS_FILE) as file:
                    for group in range(file.num_row_groups):
                        writer.write_table(file.read_row_group(group))
        level = FINAL_LEVEL if is_final else LEVEL
        paths = [source / ROWS_FILE for source in sources]
        with _rows_writer(folder, level) as writer:
            _write_merged(
                paths, writer, ROWS_A_GROUP, lambda rows: rows.sort_by(SORTED_BY)
            )


class BarFiles:
    """Of bars (``StoredBars``): one file. A merge keeps the newest of each bar."""

    product: Product = "bars"

    def write(self, folder: Path, tables: Any) -> None:
        """Write the file of a segment."""
        with _bars_writer(folder) as writer:
            writer.write_table(tables.bars, row_group_size=BARS_A_GROUP)

    def merge(self, sources: Sequence[Path], folder: Path, *, is_final: bool) -> None:
        """Write the file of a segment that holds those of others."""
        paths = [source / BARS_FILE for source in sources]
        with _bars_writer(folder, FINAL_LEVEL if is_final else LEVEL) as writer:
            _write_merged(
                paths,
                writer,
                BARS_A_GROUP,
                lambda bars: newest_bars(bars.sort_by(BAR_ORDER)),
            )


def _write_merged(
    paths: Sequence[Path],
    writer: pq.ParquetWriter,
    size: int,
    order: Callable[[pa.Table], pa.Table],
) -> None:
    """Write the rows of files sorted by ``isin``, in groups of one size.

    ``order`` puts rows of some issues into their order.
    """
    with ExitStack() as opened:
        files = [opened.enter_context(pq.ParquetFile(path)) for path in paths]
        held: deque[pa.Table] = deque()
        count = 0
        for table in map(order, _merged(files)):
            held.append(table)
            count += table.num_rows
            if count >= size:
                joined = pa.concat_tables(held)
                whole = count // size * size
                writer.write_table(joined[:whole], row_group_size=size)
                held = deque([joined[whole:]])
                count -= whole
        if count:
            writer.write_table(pa.concat_tables(held))


def _merged(files: Sequence[pq.ParquetFile]) -> Iterator[pa.Table]:
    """Yield the rows of sorted files, issue by issue, a few groups at a time."""
    groups = [iter(range(file.num_row_groups)) for file in files]
    heads: list[pa.Table | None] = [None] * len(files)
    while True:
        for n, file in enumerate(files):
            head = heads[n]
            if head is None or not head.num_rows:
                group = next(groups[n], None)
                heads[n] = None if group is None else file.read_row_group(group)
        present = [head for head in heads if head is not None]
        if not present:
            return
        # What comes before the end of every head cannot be followed by less.
        bound = min(head["isin"][-1].as_py() for head in present)
        ready = []
        for n, head in enumerate(heads):
            if head is not None:
                cut = int(pc.sum(pc.less_equal(head["isin"], bound)).as_py() or 0)
                ready.append(head[:cut])
                heads[n] = head[cut:]
        yield pa.concat_tables(ready)


def _windows_writer(folder: Path) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        folder / WINDOWS_FILE,
        WINDOWS,
        compression="zstd",
        compression_level=WINDOWS_LEVEL,
        use_dictionary=["epoch"],
        data_page_size=PAGE_BYTES,
    )


def _rows_writer(folder: Path, level: int = LEVEL) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        folder / ROWS_FILE,
        ROWS,
        compression="zstd",
        compression_level=level,
        use_dictionary=_REPEATED,
        column_encoding=dict.fromkeys(_GROWING, "DELTA_BINARY_PACKED"),
    )


def _bars_writer(folder: Path, level: int = LEVEL) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        folder / BARS_FILE,
        BARS,
        compression="zstd",
        compression_level=level,
        use_dictionary=["isin", "epoch", "width_ms", "revision"],
        column_encoding={"start": "DELTA_BINARY_PACKED"},
    )
