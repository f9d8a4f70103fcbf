"""The two files of a segment: written at once, or merged from those of others."""

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.parquet.tables import ROWS, SORTED_BY, WINDOWS

WINDOWS_FILE, ROWS_FILE = "windows.parquet", "rows.parquet"

ROWS_A_GROUP = 65_536
"""Rows of a group: one issue's day is in one or two of them, so little is read."""

WINDOWS_A_GROUP = 16
"""Windows of a group: as many as are looked at at a time."""

LEVEL, FINAL_LEVEL = 3, 9
"""How hard it is tried to make rows small: during a day, and once it is over."""

WINDOWS_LEVEL = 1
"""Windows are columns of digits: higher levels make them larger."""

PAGE_BYTES = 8_388_608
"""A group of windows is compressed as a whole."""

# As dictionaries: what repeats within an issue's rows.
_GROWING = ("offset", "position", "seq", "time")
_REPEATED = sorted({*ROWS.names} - {*_GROWING, "fields"})


def write_files(folder: Path, windows: pa.Table, rows: pa.Table) -> None:
    """Write the files of a segment. Raises OSError."""
    with _windows_writer(folder) as writer:
        writer.write_table(windows, row_group_size=WINDOWS_A_GROUP)
    with _rows_writer(folder) as writer:
        writer.write_table(rows, row_group_size=ROWS_A_GROUP)


def merge_files(sources: Sequence[Path], folder: Path, *, is_final: bool) -> None:
    """Write the files of a segment that holds those of others, in their order.

    What ``is_final`` is made as small as can be. A few groups of rows of each are in
    memory at a time. Raises OSError.
    """
    level = FINAL_LEVEL if is_final else LEVEL
    with _windows_writer(folder) as writer:
        for source in sources:
            with pq.ParquetFile(source / WINDOWS_FILE) as file:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))
    with ExitStack() as opened, _rows_writer(folder, level) as writer:
        files = [
            opened.enter_context(pq.ParquetFile(source / ROWS_FILE))
            for source in sources
        ]
        held: deque[pa.Table] = deque()
        count = 0
        for table in _merged(files):
            held.append(table)
            count += table.num_rows
            if count >= ROWS_A_GROUP:
                joined = pa.concat_tables(held)
                whole = count // ROWS_A_GROUP * ROWS_A_GROUP
                writer.write_table(joined[:whole], row_group_size=ROWS_A_GROUP)
                held = deque([joined[whole:]])
                count -= whole
        if count:
            writer.write_table(pa.concat_tables(held))


def _merged(files: Sequence[pq.ParquetFile]) -> Iterator[pa.Table]:
    """Yield the rows of sorted files, sorted, a few groups at a time."""
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
        yield pa.concat_tables(ready).sort_by(SORTED_BY)


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
