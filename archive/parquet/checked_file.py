"""One file of a segment, read only as far as it is what an archive writes.

A damaged file is told from an archive that is away.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from archive.parquet.bar_table import PRICES, SUMS
from archive.parquet.status_table import MAY_BE_NULL
from archive.parquet.tables import MASTER_NAMES

_OF_THE_FILE = {None, errno.EIO, errno.ENOTDIR, errno.EISDIR}
"""Codes of an OSError that blames the file; Arrow's own have none."""

_UNREADABLE = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError),
    *(ValueError, pa.ArrowException),
)
"""What decoding foreign bytes may end with, beside an OSError."""

_MAY_BE_NULL = {
    *("price", "size", "price_text", "size_text", "volume_text", "value_text"),
    *("fields", *PRICES, *SUMS, *MASTER_NAMES, *MAY_BE_NULL),
}


class Damaged(RuntimeError):
    """A file of a segment, ``path``, is not what an archive has written.

    The message names the file and says what is wrong with it.
    """

    def __init__(self, path: Path, reason: object) -> None:
        words = " ".join(str(reason).split()) or repr(reason)
        super().__init__(f"{path}: {words[:200]}")
        self.path = path


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Read a file of a segment in this block, and make sense of what it holds.

    Raises Damaged for what no waiting cures, FileNotFoundError if the segment has
    gone, and the OSError of a disk or a process in trouble.
    """
    try:
        yield
    except FileNotFoundError as error:
        if path.parent.exists():
            raise Damaged(path, "is missing") from error
        raise
    except OSError as error:
        if error.errno in _OF_THE_FILE:
            raise Damaged(path, error) from error
        raise
    except _UNREADABLE as error:
        raise Damaged(path, error) from error


class CheckedFile:
    """The file ``path`` with the columns of ``schema``; a context manager.

    Pages are held to their checksums, columns to their types and to having no null
    where there is none. Columns of a newer version may be there, too. Every method
    raises as ``reading``. ``footer`` is one that was read of it and looked at.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, footer: pq.FileMetaData | None = None
    ) -> None:
        self.path = path
        self._names = schema.names
        with reading(path):
            self._file = pq.ParquetFile(
                path, metadata=footer, page_checksum_verification=True
            )
            try:
                if footer is None:
                    _check_columns(self._file.schema_arrow, schema)
            except ValueError:
                self._file.close(force=True)
                raise
        self.footer: pq.FileMetaData = self._file.metadata

    def __enter__(self) -> "CheckedFile":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close(force=True)

    @property
    def groups(self) -> range:
        return range(self.footer.num_row_groups)

    def read(
        self, names: list[str] | None = None, groups: list[int] | None = None
    ) -> pa.Table:
        """Return the lines of all groups or of these, with these columns or all."""
        names = names or self._names
        groups = [*self.groups] if groups is None else groups
        with reading(self.path):
            table: Any = self._file.read_row_groups(groups, names, use_threads=False)
            return _without_nulls(table, names)

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
                piece = _without_nulls(pa.Table.from_batches([batch]), self._names)
            if piece.num_rows:
                yield piece


def _without_nulls(table: pa.Table, names: list[str]) -> pa.Table:
    """Return a table with these columns, held to having no null."""
    for name in names:
        if name not in _MAY_BE_NULL and table[name].null_count:
            raise ValueError(f"column {name}: has nulls")
    return table.select(names)


def _check_columns(there: pa.Schema, schema: pa.Schema) -> None:
    """Raise ValueError unless a file has these columns, of these types."""
    for field in schema:
        if there.get_field_index(field.name) < 0:
            raise ValueError(f"has no column {field.name}")
        kind = there.field(field.name).type
        if kind != field.type:
            raise ValueError(f"column {field.name}: is {kind}, must be {field.type}")
