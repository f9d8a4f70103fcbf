"""Reads files of an archive, which whoever stores may merge meanwhile.

What cannot be read is left out, named in the log and remembered: one bad file takes no
other answer with it.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache, wraps
from pathlib import Path
from typing import ParamSpec, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import structlog

from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.segment import Segment, span_of
from archive.parquet.checked_file import CheckedFile, Damaged, reading
from archive.parquet.segment_files import SegmentFiles
from archive.parquet.segment_folder import (
    all_segments,
    days_in,
    segment_aside,
    segments_aside,
    segments_in,
)

P = ParamSpec("P")
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


def steadily(read: Callable[P, T]) -> Callable[P, T]:
    """Have what reads files be called again if one of them has gone."""

    @wraps(read)
    def call(*arguments: P.args, **options: P.kwargs) -> T:
        for _ in range(ATTEMPTS - 1):
            with suppress(FileNotFoundError):
                return read(*arguments, **options)
        return read(*arguments, **options)

    return call


class ChangingFiles:
    """Files below ``root`` that are there or are not. Methods raise OSError.

    Several threads may ask. ``schema`` has the columns that an instrument's rows are
    read with.
    """

    def __init__(self, root: Path, schema: pa.Schema) -> None:
        self._root = root
        self._schema = schema
        self._damaged: OrderedDict[Path, tuple[_Version, str]] = OrderedDict()

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
        parsed = [Segment.parse(path.parent.name) for path in self.damage()]
        parsed += [segment_aside(path.name) for path in segments_aside(self._root)]
        return [segment for segment in parsed if segment is not None]

    def rows_of_instrument(self, path: Path, isin: str) -> pa.Table | None:
        """Return an instrument's rows of a file, None where it cannot have any.

        Only the groups of rows that may have the instrument are read. Raises Damaged.
        """
        with reading(path):
            footer = _footer(path, _version_of(path), self._schema)
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


@lru_cache(maxsize=KEPT_FOOTERS)
def _footer(path: Path, version: _Version, schema: pa.Schema) -> pq.FileMetaData:
    """Return the footer of a version of a file. Raises as ``CheckedFile`` does."""
    with CheckedFile(path, schema) as file:
        return file.footer


class SegmentReader:
    """The segments of a product in the folder ``root``, which need not be there.

    Methods raise OSError. Damaged files are left out, and among the ``gaps`` from then
    on. ``schema`` has the columns that an instrument's rows are read with.
    """

    def __init__(
        self,
        root: Path,
        kind: SegmentFiles,
        schema: pa.Schema,
        files: type[ChangingFiles],
    ) -> None:
        self._root = root
        self._kind = kind
        self._files = files(root, schema)

    def segments(self) -> list[Segment]:
        """Return every segment that can be read, in the order of publication."""
        damaged = {path.parent for path in self._files.damage()}
        return [s for s, path in all_segments(self._root) if path not in damaged]

    def gaps(self, first_ms: int, last_ms: int) -> list[ArchiveGap]:
        """Return the gaps between windows, or bars, that end within these bounds."""
        damaged = self._files.damaged_segments()
        gaps = find_gaps(self.segments(), self._kind.product, damaged)
        return [gap for gap in gaps if gap.is_within(first_ms, last_ms)]

    def check(self) -> list[str]:
        """Look at every segment; return what is wrong, and what was set aside."""
        return self._files.check(self._kind)

    def damage(self) -> list[str]:
        """Return what is wrong with each file that was found damaged."""
        return [*self._files.damage().values()]

    @steadily
    def read_each(
        self,
        name: str,
        schema: pa.Schema,
        bounds_ms: tuple[int, int],
        read: Callable[[Segment, CheckedFile], T],
    ) -> list[T]:
        """Return what ``read`` makes of each file ``name``, in order of publication.

        Of the segments with a window, or a bar, that ends within the bounds.
        """
        answers = []
        for segment, path in self._placed(*bounds_ms):
            with (
                self._files.skipping_damage(path / name),
                CheckedFile(path / name, schema) as file,
            ):
                answers.append(read(segment, file))
        return answers

    def _placed(self, first_ms: int, last_ms: int) -> list[tuple[Segment, Path]]:
        placed = []
        for day, folder in days_in(self._root).items():
            day_first, day_last = span_of(day)
            if day_first <= last_ms and day_last >= first_ms:
                placed += segments_in(folder)
        return [
            (segment, path)
            for segment, path in sorted(placed)
            if segment.first_ms <= last_ms and segment.last_ms >= first_ms
        ]


def _version_of(path: Path) -> _Version:
    with suppress(OSError):
        stat = path.stat()
        return stat.st_ino, stat.st_mtime_ns, stat.st_size
    return None
