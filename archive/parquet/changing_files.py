"""Reads files of an archive, which whoever stores may merge meanwhile.

What cannot be read is left out, named in the log and remembered: one bad file takes no
other answer with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import structlog

from archive.contract.segment import Segment
from archive.parquet.checked_file import CheckedFile, read_footer
from archive.parquet.damage import Damaged, reading
from archive.parquet.segment_files import SegmentFiles
from archive.parquet.segment_folder import all_segments, segments_aside

T = TypeVar("T")

ATTEMPTS = 5
"""How often a question is asked anew because files of it have gone."""

KEPT_FOOTERS = 64
"""This many files' footers are kept, some hundred kilobytes of a whole day's."""

KEPT_NOTES = 1_000
"""This many damaged files are remembered, the newest."""

_Version = tuple[int, int, int] | None
"""What tells a file from the one that takes its place; None if it is missing."""

log = structlog.get_logger()


class ChangingFiles:
    """Files below ``root`` that are there or are not. Methods raise OSError.

    Several threads may ask. ``schema`` has the columns that an instrument's rows are
    read with.
    """

    def __init__(self, root: Path, schema: pa.Schema) -> None:
        self._root = root
        self._schema = schema
        self._footers: OrderedDict[tuple[Path, _Version], pq.FileMetaData] = (
            OrderedDict()
        )
        self._damaged: OrderedDict[Path, tuple[_Version, str]] = OrderedDict()

    def steadily(self, read: Callable[[], T]) -> T:
        """Return what ``read`` returns; it is called again if a file has gone."""
        for _ in range(ATTEMPTS - 1):
            with suppress(FileNotFoundError):
                return read()
        return read()

    @contextmanager
    def skipping_damage(self, path: Path) -> Iterator[None]:
        """Read a file of a segment in this block, which ends where it is damaged."""
        try:
            with reading(path):
                yield
        except Damaged as error:
            self._note(error)
        except PermissionError as error:
            self._note(Damaged(path, error))

    def check(self, files: SegmentFiles) -> list[str]:
        """Look at every segment; return what is wrong, and what was set aside."""
        for segment, path in all_segments(self._root):
            try:
                files.check(segment, path)
            except Damaged as error:
                self._note(error)
            except FileNotFoundError:
                # Merged meanwhile.
                continue
        return [
            *self.damage().values(),
            *(f"{path}: was set aside" for path in segments_aside(self._root)),
        ]

    def damage(self) -> dict[Path, str]:
        """Return the files that were found damaged, as they still are, and why."""
        notes = [*self._damaged.items()]
        return {
            path: words
            for path, (version, words) in notes
            if path.parent.exists() and _version_of(path) == version
        }

    def damaged_segments(self) -> list[Segment]:
        """Return the segments that were found damaged, and those set aside."""
        names = [path.parent.name for path in self.damage()]
        # A second one of a name has a number behind it.
        names += [p.name.partition(".")[0] for p in segments_aside(self._root)]
        parsed = map(Segment.parse, names)
        return [segment for segment in parsed if segment is not None]

    def rows_of_instrument(self, path: Path, isin: str) -> pa.Table | None:
        """Return an instrument's rows of a file, None where it cannot have any.

        Only the groups of rows that may have the instrument are read. Raises Damaged.
        """
        with reading(path):
            footer = self._footer(path)
            column = footer.schema.names.index("isin")
            groups = []
            for group in range(footer.num_row_groups):
                bounds = footer.row_group(group).column(column).statistics
                is_open = bounds is None or not bounds.has_min_max
                if is_open or bounds.min <= isin <= bounds.max:
                    groups.append(group)
            if not groups:
                return None
            with CheckedFile(path, self._schema, footer) as file:
                table = file.read(groups=groups)
            return table.filter(pc.equal(table["isin"], isin))

    def _note(self, error: Damaged) -> None:
        note = _version_of(error.path), str(error)
        if self._damaged.get(error.path) != note:
            log.error("a damaged file of the archive", reason=note[1])
        self._damaged[error.path] = note
        while len(self._damaged) > KEPT_NOTES:
            with suppress(KeyError):
                self._damaged.popitem(last=False)

    def _footer(self, path: Path) -> pq.FileMetaData:
        key = path, _version_of(path)
        footer = self._footers.get(key)
        if footer is None:
            footer = self._footers[key] = read_footer(path, self._schema)
            while len(self._footers) > KEPT_FOOTERS:
                # Another thread may have been faster.
                with suppress(KeyError):
                    self._footers.popitem(last=False)
        return footer


def _version_of(path: Path) -> _Version:
    with suppress(OSError):
        stat = path.stat()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size
    return None
