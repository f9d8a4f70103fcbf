"""The files of a segment: written at once, or merged from those of others."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from archive.contract.packed_window import pack_window
from archive.contract.segment import Product, Segment
from archive.parquet.bar_table import BAR_ORDER, BARS, newest_bars
from archive.parquet.checked_file import CheckedFile, reading
from archive.parquet.status_table import STATUS_ORDER, STATUSES
from archive.parquet.tables import ROWS, SORTED_BY, WINDOWS

WINDOWS_FILE, ROWS_FILE = "windows.parquet", "rows.parquet"
BARS_FILE, STATUSES_FILE = "bars.parquet", "statuses.parquet"

FILED_WINDOWS = WINDOWS.append(pa.field("packed", pa.binary()))
"""One line a window; ``packed`` is what was published (``packed_window.py``)."""

ROWS_A_GROUP = 32_768
"""Rows of a group: one instrument's day is in one or two of them, so little is read."""

ROWS_A_PIECE = 4_096
"""Rows that a merge reads of a file at a time: groups of all files would be hundreds of
MiB at the end of a day.
"""

WINDOWS_A_GROUP = 16
"""Windows of a group: as many as are looked at at a time."""

BARS_A_GROUP = 16_384
"""Bars of a group: one instrument's day is in one or two of them."""

LEVEL, FINAL_LEVEL = 3, 9
"""How hard it is tried to make rows small: during a day, and once it is over."""

WINDOWS_LEVEL = 1
"""Windows are columns of digits: higher levels make them larger."""

PAGE_BYTES = 8_388_608
"""A group of windows is compressed as a whole."""

_SCHEMAS = {
    WINDOWS_FILE: FILED_WINDOWS,
    ROWS_FILE: ROWS,
    BARS_FILE: BARS,
    STATUSES_FILE: STATUSES,
}

_GROWING = ("offset", "position", "seq", "time")
_OPTIONS: dict[str, dict[str, Any]] = {
    WINDOWS_FILE: {
        "compression_level": WINDOWS_LEVEL,
        "use_dictionary": ["epoch"],
        "data_page_size": PAGE_BYTES,
    },
    ROWS_FILE: {
        # As dictionaries: what repeats within an instrument's rows.
        "use_dictionary": sorted({*ROWS.names} - {*_GROWING, "fields", "value"}),
        "column_encoding": dict.fromkeys(_GROWING, "DELTA_BINARY_PACKED"),
    },
    BARS_FILE: {
        "use_dictionary": ["isin", "epoch", "width_ms", "revision"],
        "column_encoding": {"start": "DELTA_BINARY_PACKED"},
    },
    STATUSES_FILE: {"use_dictionary": ["isin", "status", "venue", "reason", "epoch"]},
}


Pause = Callable[[], None]


class SegmentFiles(Protocol):
    """How the segments of one product are written. Methods raise OSError, and Damaged
    for a file that should be merged or checked and is not what was written.

    ``write`` writes the files of a segment into an empty folder, ``merge`` those of a
    segment that holds others, in their order; what ``is_final`` is made as small as
    can be. A piece of each file and a group to be written are in memory at a time, and
    ``pause`` is called between pieces: what it raises ends the merge. ``check`` looks
    at a segment's footers and counts, not at all of its bytes.
    """

    product: Product

    def write(self, folder: Path, tables: Any) -> None: ...

    def merge(
        self, sources: Sequence[Path], folder: Path, pause: Pause, *, is_final: bool
    ) -> None: ...

    def check(self, segment: Segment, folder: Path) -> None: ...


class WindowFiles(SegmentFiles):
    """Of windows (``StoredTables``): two files, of windows and of their rows."""

    product: Product = "windows"

    def write(self, folder: Path, tables: Any) -> None:
        packed = pa.array(map(pack_window, tables.messages), pa.binary())
        windows = tables.windows.append_column("packed", packed)
        with _writer(folder, WINDOWS_FILE) as writer:
            writer.write_table(windows, row_group_size=WINDOWS_A_GROUP)
        with _writer(folder, ROWS_FILE) as writer:
            writer.write_table(tables.rows, row_group_size=ROWS_A_GROUP)

    def merge(
        self, sources: Sequence[Path], folder: Path, pause: Pause, *, is_final: bool
    ) -> None:
        with _writer(folder, WINDOWS_FILE) as writer:
            for source in sources:
                with CheckedFile(source / WINDOWS_FILE, FILED_WINDOWS) as file:
                    for group in file.groups:
                        pause()
                        writer.write_table(file.read(groups=[group]))
        with _merging(sources, folder, ROWS_FILE, pause, is_final) as (rows, writer):
            ordered = (piece.sort_by(SORTED_BY) for piece in rows)
            _write_grouped(ordered, writer, ROWS_A_GROUP)

    def check(self, segment: Segment, folder: Path) -> None:
        """Raise Damaged unless the files have the windows that the name says."""
        with CheckedFile(folder / WINDOWS_FILE, FILED_WINDOWS) as file:
            windows = file.read(["epoch", "offset", "rows"])
        with CheckedFile(folder / ROWS_FILE, ROWS) as file:
            rows, epochs = file.footer.num_rows, _bounds_of(file.footer, "epoch")
        _check_numbers(folder / WINDOWS_FILE, windows, "offset", segment)
        with reading(folder / ROWS_FILE):
            if (of_windows := pc.sum(windows["rows"]).as_py()) != rows:
                raise ValueError(f"has {rows:,} rows, its windows have {of_windows:,}")
            if epochs - {segment.epoch}:
                raise ValueError("has other rows than the segment's name says")


class OneFile(SegmentFiles):
    """Of a product that is one table, ``tables`` having it by the product's name."""

    file: str

    def write(self, folder: Path, tables: Any) -> None:
        with _writer(folder, self.file) as writer:
            table = getattr(tables, self.product)
            writer.write_table(table, row_group_size=BARS_A_GROUP)

    def merge(
        self, sources: Sequence[Path], folder: Path, pause: Pause, *, is_final: bool
    ) -> None:
        with _merging(sources, folder, self.file, pause, is_final) as (pieces, writer):
            _write_grouped(map(self.in_order, pieces), writer, BARS_A_GROUP)

    def in_order(self, piece: pa.Table) -> pa.Table:
        """Return what a merge keeps of a piece, in the order of the file."""
        raise NotImplementedError


class BarFiles(OneFile):
    """Of bars (``StoredBars``). A merge keeps the newest of each bar."""

    product: Product = "bars"
    file = BARS_FILE

    def in_order(self, piece: pa.Table) -> pa.Table:
        return newest_bars(piece.sort_by(BAR_ORDER))

    def check(self, segment: Segment, folder: Path) -> None:
        """Raise Damaged unless the file has bars of the entries that the name says."""
        with CheckedFile(folder / BARS_FILE, BARS) as file:
            bars = file.read(["epoch", "number"])
        with reading(folder / BARS_FILE):
            # Of an entry whose bars were all amended later, none may be left.
            numbers = pc.min_max(bars["number"]).as_py()
            is_within = segment.first <= numbers["min"] <= numbers["max"]
            is_named = set(bars["epoch"].to_pylist()) == {segment.epoch}
            if not (is_named and is_within and numbers["max"] <= segment.last):
                raise ValueError("has other bars than the segment's name says")


class StatusFiles(OneFile):
    """Of trading statuses (``StoredStatuses``)."""

    product: Product = "statuses"
    file = STATUSES_FILE

    def in_order(self, piece: pa.Table) -> pa.Table:
        return piece.sort_by(STATUS_ORDER)

    def check(self, segment: Segment, folder: Path) -> None:
        """Raise Damaged unless the file has the statuses that the name says."""
        with CheckedFile(folder / STATUSES_FILE, STATUSES) as file:
            statuses = file.read(["epoch", "number"])
        _check_numbers(folder / STATUSES_FILE, statuses, "number", segment)


def _check_numbers(file: Path, lines: pa.Table, column: str, segment: Segment) -> None:
    with reading(file):
        numbers = sorted(lines[column].to_pylist())
        is_named = set(lines["epoch"].to_pylist()) == {segment.epoch}
        if not is_named or numbers != [*range(segment.first, segment.last + 1)]:
            raise ValueError(f"has other {file.stem} than the segment's name says")


def _bounds_of(footer: pq.FileMetaData, column: str) -> set[Any]:
    """Return the least and the greatest values of a column, by its groups."""
    at = footer.schema.names.index(column)
    groups = (footer.row_group(n) for n in range(footer.num_row_groups))
    bounds = (group.column(at).statistics for group in groups)
    return {
        value
        for statistics in bounds
        if statistics is not None and statistics.has_min_max
        for value in (statistics.min, statistics.max)
    }


@contextmanager
def _merging(
    sources: Sequence[Path], folder: Path, name: str, pause: Pause, is_final: bool
) -> Iterator[tuple[Iterator[pa.Table], pq.ParquetWriter]]:
    """Give the rows of the sources' files ``name``, and what writes the merged one."""
    with (
        _writer(folder, name, FINAL_LEVEL if is_final else LEVEL) as writer,
        ExitStack() as stack,
    ):
        schema = _SCHEMAS[name]
        files = (CheckedFile(source / name, schema) for source in sources)
        opened = [stack.enter_context(file) for file in files]
        yield _merged(opened, schema, pause), writer


def _write_grouped(
    tables: Iterable[pa.Table], writer: pq.ParquetWriter, size: int
) -> None:
    waiting: deque[pa.Table] = deque()
    count = 0
    for table in tables:
        waiting.append(table)
        count += table.num_rows
        if count >= size:
            joined = pa.concat_tables(waiting)
            whole = count // size * size
            writer.write_table(joined[:whole], row_group_size=size)
            waiting = deque([joined[whole:]])
            count -= whole
    if count:
        writer.write_table(pa.concat_tables(waiting))


def _merged(
    files: Sequence[CheckedFile], schema: pa.Schema, pause: Pause
) -> Iterator[pa.Table]:
    """Yield the rows of files by ``isin``, all rows of an instrument together."""
    pieces = {n: file.pieces(ROWS_A_PIECE) for n, file in enumerate(files)}
    # What was read of each file and not yielded.
    heads = [schema.empty_table()] * len(files)
    while pieces:
        pause()
        # Whatever has been read of the others waits for this one.
        n = min(pieces, key=lambda n: _last_of(heads[n]))
        piece = next(pieces[n], None)
        if piece is None:
            del pieces[n]
        else:
            heads[n] = pa.concat_tables([heads[n], piece])
        # More rows of an instrument may follow the last one that was read.
        bound = min((_last_of(heads[n]) for n in pieces), default=None)
        ready = []
        for n, head in enumerate(heads):
            count = head.num_rows
            if bound is not None and count:
                count = pc.sum(pc.less(head["isin"], bound)).as_py()
            ready.append(head[:count])
            heads[n] = head[count:]
        if any(rows.num_rows for rows in ready):
            yield pa.concat_tables(ready)


def _last_of(head: pa.Table) -> str:
    return str(head["isin"][-1].as_py()) if head.num_rows else ""


def _writer(folder: Path, name: str, level: int = LEVEL) -> pq.ParquetWriter:
    options = {"compression_level": level, **_OPTIONS[name]}
    return pq.ParquetWriter(
        folder / name,
        _SCHEMAS[name],
        write_page_checksum=True,
        compression="zstd",
        **options,
    )
