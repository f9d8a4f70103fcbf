"""Counts what an archive in files holds."""

from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archive.bar_account import BarKey, Edition
from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Product, Segment
from archive.parquet.archive_reader import ArchiveReader
from archive.parquet.bar_reader import BarReader
from archive.parquet.bar_table import EDITION, KEY


class ParquetCounts:
    """What is stored, by the files. Methods raise OSError."""

    def __init__(self, root: Path) -> None:
        self._reader = ArchiveReader(root)
        self._bars = BarReader(root)

    def segments(self, product: Product = "windows") -> list[Segment]:
        """Return each segment that can be read, of windows or of bars."""
        return self._reader_of(product).segments()

    def gaps(
        self, product: Product, first_ms: int = 0, last_ms: int = 2**53
    ) -> list[ArchiveGap]:
        """Return the gaps between two ends, with what is known to be damaged."""
        return self._reader_of(product).gaps(first_ms, last_ms)

    def damage(self) -> list[str]:
        """Look at every segment's footers and counts; return what is wrong, and what
        was set aside.
        """
        return [*self._reader.check(), *self._bars.check()]

    def windows(
        self, first_ms: int, last_ms: int
    ) -> list[tuple[tuple[str, int], int, int]]:
        """Return place, end and number of rows of each window."""
        found = self._reader.counts(first_ms, last_ms)
        if not found.num_rows:
            return []
        ends = pc.cast(found["window"], pa.int64()).to_pylist()
        rows = found["rows"].to_pylist()
        return list(zip(_places(found), ends, rows, strict=True))

    def rows(self, first_ms: int, last_ms: int) -> list[tuple[tuple[str, int], int]]:
        """Return the rows of each place, counted one by one."""
        counts = self._reader.row_counts(first_ms, last_ms)
        return list(zip(_places(counts), counts["rows"].to_pylist(), strict=True))

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]:
        """Return the edition of each bar that ends then."""
        found = self._bars.table(first_ms, last_ms)
        columns = (found[name].to_pylist() for name in (*KEY, *EDITION))
        rows = zip(*columns, strict=True)
        return {(isin, start, width): (rev, n) for isin, start, width, rev, n in rows}

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        """Return how many bars of each width end then."""
        found = pc.value_counts(self._bars.table(first_ms, last_ms)["width_ms"])
        return {entry["values"]: entry["counts"] for entry in found.to_pylist()}

    def bar_lines(self) -> dict[date, int]:
        """Return how many lines there are of each day; amended bars may be twice."""
        return self._bars.lines()

    def _reader_of(self, product: Product) -> ArchiveReader | BarReader:
        return self._reader if product == "windows" else self._bars


def _places(table: pa.Table) -> list[tuple[str, int]]:
    columns = table["epoch"].to_pylist(), table["offset"].to_pylist()
    return list(zip(*columns, strict=True))
