"""Reads files of an archive, which whoever stores may merge meanwhile."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

T = TypeVar("T")

ATTEMPTS = 5
"""How often a question is asked anew because files of it have gone."""

KEPT_FOOTERS = 64
"""This many files' footers are kept, some hundred kilobytes of a whole day's."""


class ChangingFiles:
    """Files that are there or are not. Methods raise OSError."""

    def __init__(self) -> None:
        self._footers: OrderedDict[Path, pq.FileMetaData] = OrderedDict()

    def steadily(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns; it is called again if a file has gone."""
        for _ in range(ATTEMPTS - 1):
            try:
                return read()
            except FileNotFoundError:
                self._footers.clear()
        return read()

    def rows_of_issue(
        self, path: Path, isin: str, columns: list[str] | None = None
    ) -> pa.Table | None:
        """Return an issue's rows of a file, None where it cannot have any.

        Only the groups of rows that may have the issue are read. ``columns`` are those
        that are wanted, every one without; ``isin`` is among them.
        """
        footer = self._footer(path)
        column = footer.schema.names.index("isin")
        groups = []
        for group in range(footer.num_row_groups):
            known = footer.row_group(group).column(column).statistics
            if known is None or known.min <= isin <= known.max:
                groups.append(group)
        if not groups:
            return None
        with pq.ParquetFile(path, metadata=footer) as file:
            table = file.read_row_groups(groups, columns, use_threads=False)
        return table.filter(pc.equal(table["isin"], isin))

    def _footer(self, path: Path) -> pq.FileMetaData:
        footer = self._footers.get(path)
        if footer is None:
            footer = self._footers[path] = pq.read_metadata(path)
            while len(self._footers) > KEPT_FOOTERS:
                # Another thread may have been faster.
                with suppress(KeyError):
                    self._footers.popitem(last=False)
        return footer
