"""Counts what an archive in files holds."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from archive.contract.segment import Segment
from archive.parquet.archive_reader import ArchiveReader


class ParquetCounts:
    """What is stored, by the files. Methods raise OSError."""

    def __init__(self, root: Path) -> None:
        self._reader = ArchiveReader(root)

    def segments(self) -> list[Segment]:
        """Return each segment."""
        return self._reader.segments()

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

    def rows(
        self, first_ms: int, last_ms: int, partition: Callable[[str], int]
    ) -> list[tuple[tuple[str, int], int, int]]:
        """Return place, partition and number of the rows of it, counted one by one."""
        found = self._reader.row_counts(first_ms, last_ms, partition)
        numbers = found["partition"].to_pylist(), found["rows"].to_pylist()
        return list(zip(_places(found), *numbers, strict=True))


def _places(table: pa.Table) -> list[tuple[str, int]]:
    columns = table["epoch"].to_pylist(), table["offset"].to_pylist()
    return list(zip(*columns, strict=True))
