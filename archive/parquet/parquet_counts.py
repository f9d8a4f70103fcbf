"""Counts what an archive in files holds."""

from collections import Counter
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archive.account import BarKey, Edition, Place, RowCount
from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Product, Segment, day_of
from archive.parquet.archive_reader import ArchiveReader
from archive.parquet.bar_reader import BarReader
from archive.parquet.bar_table import BAR_ORDER, BARS, EDITION, KEY, newest_bars
from archive.parquet.changing_files import ChangingFiles, SegmentReader
from archive.parquet.checked_file import CheckedFile
from archive.parquet.segment_files import (
    BARS_FILE,
    FILED_WINDOWS,
    ROWS_FILE,
    WINDOWS_FILE,
    StatusFiles,
)
from archive.parquet.segment_folder import bars_root, days_in, statuses_root
from archive.parquet.status_table import STATUSES
from archive.parquet.tables import ROWS, ends_within

_END_OF_TIME_MS = 2**53


class ParquetCounts:
    """What is stored, by the files; ``ArchiveCounts``. Methods raise OSError."""

    def __init__(self, root: Path) -> None:
        self._root = root
        of_statuses = statuses_root(root), StatusFiles(), STATUSES, ChangingFiles
        self._readers: dict[Product, SegmentReader] = {
            "windows": ArchiveReader(root),
            "bars": BarReader(root),
            "statuses": SegmentReader(*of_statuses),
        }
        self.keeps = tuple(self._readers)

    def segments(self, product: Product = "windows") -> list[Segment]:
        return self._readers[product].segments()

    def gaps(
        self, product: Product, first_ms: int = 0, last_ms: int = _END_OF_TIME_MS
    ) -> list[ArchiveGap]:
        """Return the gaps between two ends, with what is known to be damaged."""
        return self._readers[product].gaps(first_ms, last_ms)

    def damage(self) -> list[str]:
        """Look at every segment's footers and counts; return what is wrong, and what
        was set aside.
        """
        return [words for reader in self._readers.values() for words in reader.check()]

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]:
        def read(_: Segment, file: CheckedFile) -> list[tuple[Place, int, int]]:
            names = ["epoch", "offset", "window", "rows"]
            lines = ends_within(file.read(names), first_ms, last_ms)
            ends = pc.cast(lines["window"], pa.int64()).to_pylist()
            rows = lines["rows"].to_pylist()
            return list(zip(_places(lines), ends, rows, strict=True))

        bounds_ms = first_ms, last_ms
        read_each = self._readers["windows"].read_each
        files = read_each(WINDOWS_FILE, FILED_WINDOWS, bounds_ms, read)
        return [window for windows in files for window in windows]

    def rows(self, first_ms: int, last_ms: int) -> list[RowCount]:
        """Return the rows of each place, counted one by one.

        A group of rows is in memory at a time.
        """

        def read(_: Segment, file: CheckedFile) -> Counter[Place]:
            counts = Counter[Place]()
            for group in file.groups:
                rows = file.read(["epoch", "offset", "window"], [group])
                within = ends_within(rows, first_ms, last_ms)
                by_place = within.group_by(["epoch", "offset"])
                counted = by_place.aggregate([([], "count_all")])
                numbers = counted["count_all"].to_pylist()
                counts.update(dict(zip(_places(counted), numbers, strict=True)))
            return counts

        bounds_ms = first_ms, last_ms
        files = self._readers["windows"].read_each(ROWS_FILE, ROWS, bounds_ms, read)
        total = Counter[Place]()
        for counts in files:
            total.update(counts)
        return [(place, None, count) for place, count in total.items()]

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]:
        bars = self._newest(first_ms, last_ms)
        columns = (bars[name].to_pylist() for name in (*KEY, *EDITION))
        rows = zip(*columns, strict=True)
        return {(isin, start, width): (rev, n) for isin, start, width, rev, n in rows}

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        return Counter(self._newest(first_ms, last_ms)["width_ms"].to_pylist())

    def bar_lines(self) -> dict[date, int]:
        def read(segment: Segment, file: CheckedFile) -> tuple[date, int]:
            return day_of(segment.first_ms), file.footer.num_rows

        every = 0, _END_OF_TIME_MS
        lines = dict.fromkeys(days_in(bars_root(self._root)), 0)
        for day, rows in self._readers["bars"].read_each(BARS_FILE, BARS, every, read):
            lines[day] = lines.get(day, 0) + rows
        return lines

    def _newest(self, first_ms: int, last_ms: int) -> pa.Table:
        """Return ``KEY`` and ``EDITION`` of the bars that end then, each once.

        ``start`` is milliseconds since 1970.
        """
        names = [*KEY, *EDITION]

        def read(_: Segment, file: CheckedFile) -> pa.Table:
            bars = file.read(names)
            start = pc.cast(bars["start"], pa.int64())
            end = pc.add(start, pc.cast(bars["width_ms"], pa.int64()))
            return bars.set_column(1, "start", start).filter(
                pc.and_(pc.greater_equal(end, first_ms), pc.less_equal(end, last_ms))
            )

        bounds_ms = first_ms, last_ms
        tables = self._readers["bars"].read_each(BARS_FILE, BARS, bounds_ms, read)
        if not tables:
            return pa.schema([BARS.field(name) for name in names]).empty_table()
        return newest_bars(pa.concat_tables(tables).sort_by(BAR_ORDER))


def _places(table: pa.Table) -> list[Place]:
    columns = table["epoch"].to_pylist(), table["offset"].to_pylist()
    return list(zip(*columns, strict=True))
