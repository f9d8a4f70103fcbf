"""One file of a segment, read only as far as it is what an archive writes."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archive.parquet.bar_table import PRICES, SUMS
from archive.parquet.damage import reading
from archive.parquet.tables import MASTER_NAMES, ROWS, SUM_NAMES

_MAY_BE_NULL = {
    *("price", "size", "price_text", "size_text", "fields"),
    *(*PRICES, *SUMS, *MASTER_NAMES),
}


class CheckedFile:
    """The file ``path`` with the columns of ``schema``; a context manager.

    Pages are held to their checksums, columns to their types and to having no null
    where there is none. Columns of a newer version may be there, too; the sums of rows
    are null where an earlier version wrote them. Every method raises as
    ``damage.reading``. ``footer`` is one that was read of it and looked at.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, footer: pq.FileMetaData | None = None
    ) -> None:
        self.path = path
        self._names = schema.names
        added = SUM_NAMES if schema is ROWS else ()
        self._may_be_null = {*_MAY_BE_NULL, *added}
        with reading(path):
            self._file = pq.ParquetFile(
                path, metadata=footer, page_checksum_verification=True
            )
            try:
                there = self._file.schema_arrow
                if footer is None:
                    _check_columns(there, schema, added)
            except ValueError:
                self._file.close(force=True)
                raise
        self._missing = [schema.field(n) for n in added if n not in there.names]
        self.footer: pq.FileMetaData = self._file.metadata

    def __enter__(self) -> "CheckedFile":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close(force=True)

    def read_group(self, group: int, columns: list[str] | None = None) -> pa.Table:
        """Return a group of lines, with these columns or all of the schema."""
        return self._read([group], columns)

    def read(
        self, columns: list[str] | None = None, groups: list[int] | None = None
    ) -> pa.Table:
        """Return the lines of all groups, or of these."""
        if groups is None:
            groups = list(range(self.footer.num_row_groups))
        return self._read(groups, columns)

    def pieces(self, rows: int) -> Iterator[pa.Table]:
        """Yield all lines, in order, at most so many at a time and at least one."""
        options = {"batch_size": rows, "columns": self._names, "use_threads": False}
        with reading(self.path):
            batches: Any = self._file.iter_batches(**options)
        while True:
            with reading(self.path):
                batch = next(batches, None)
                if batch is None:
                    return
                piece = self._checked(pa.Table.from_batches([batch]), self._names)
            if piece.num_rows:
                yield piece

    def _read(self, groups: list[int], columns: list[str] | None) -> pa.Table:
        names = columns or self._names
        with reading(self.path):
            # Names that it does not have are passed over.
            table: Any = self._file.read_row_groups(groups, names, use_threads=False)
            return self._checked(table, names)

    def _checked(self, table: Any, names: list[str]) -> pa.Table:
        """Return a table with these columns, held to having no null."""
        for field in self._missing:
            table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        for name in names:
            if name not in self._may_be_null and table[name].null_count:
                raise ValueError(f"column {name}: has nulls")
        return table.select(names)


def read_footer(path: Path, schema: pa.Schema) -> pq.FileMetaData:
    """Return the footer of a file with the columns of ``schema``; raises the same."""
    with CheckedFile(path, schema) as file:
        return file.footer


def _check_columns(there: pa.Schema, schema: pa.Schema, added: Sequence[str]) -> None:
    """Raise ValueError unless a file has these columns, of these types.

    Those that were ``added`` need not be there.
    """
    for field in schema:
        if there.get_field_index(field.name) < 0:
            if field.name in added:
                continue
            raise ValueError(f"has no column {field.name}")
        kind = there.field(field.name).type
        if kind != field.type:
            raise ValueError(f"column {field.name}: is {kind}, must be {field.type}")
