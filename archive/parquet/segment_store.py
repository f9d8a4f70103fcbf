"""The segments of one product in a folder: stored, merged as they grow, removed."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from archive.contract.merge_rule import choose_merge
from archive.contract.segment import Product, Segment, day_of
from archive.parquet.segment_files import SegmentFiles
from archive.parquet.segment_folder import (
    SegmentFolder,
    all_segments,
    bytes_in,
    days_in,
    segments_in,
)

_NAMES: dict[Product, str] = {"windows": "", "bars": " of bars"}


class SegmentStore:
    """One product's part of an archive. Methods raise OSError; what was being done then
    is not there, or is there as a whole.

    ``is_made_late``: the folder is made when there is something to store.
    """

    def __init__(
        self,
        root: Path,
        files: SegmentFiles,
        at_step: Callable[[str], None],
        *,
        is_made_late: bool = False,
    ) -> None:
        self._root = root
        self._files = files
        self._at_step = at_step
        self._is_made_late = is_made_late
        self._folder = SegmentFolder(root, at_step)
        self._name = _NAMES[files.product]
        # Segments never change.
        self._sizes: dict[Path, int] = {}

    def open(self) -> list[Segment]:
        """Return what is stored. Raises FolderLocked."""
        self._folder.close()
        if self._root.exists() or not self._is_made_late:
            self._open_folder()
        return self.segments()

    def segments(self) -> list[Segment]:
        """Return each segment, in the order of publication."""
        return [segment for segment, _ in all_segments(self._root)]

    def days(self) -> list[date]:
        """Return the days of which something is stored, oldest first."""
        return list(days_in(self._root))

    def store(self, segment: Segment, tables: Any) -> None:
        """Store a segment: entries that follow each other, of one epoch and day."""
        if not self._folder.is_open:
            self._open_folder()
        part = self._folder.part(segment)
        self._files.write(part, tables)
        self._at_step("written")
        self._folder.add(day_of(segment.first_ms), segment)

    def merge(self, today: date) -> str | None:
        """Merge some segments of a day; say what, None if there is nothing to do."""
        for day, folder in days_in(self._root).items():
            paths = dict(segments_in(folder))
            chosen = choose_merge(list(paths), is_over=day < today)
            if chosen:
                merged = chosen[0]
                for later in chosen[1:]:
                    merged = merged.join(later)
                part = self._folder.part(merged)
                sources = [paths[segment] for segment in chosen]
                self._files.merge(sources, part, is_final=day < today)
                self._at_step("merged")
                self._folder.replace(day, chosen, merged)
                return f"merged {len(chosen)} segments{self._name} of {day}"
        return None

    def remove_oldest(self) -> str | None:
        """Remove the oldest day, of the only one the oldest segment; say what.

        The newest segment stays: where the archive goes on is what is stored.
        """
        days = self.days()
        if len(days) > 1:
            self._folder.drop(days[0])
            return f"removed the day {days[0]}{self._name}"
        segments = self.segments()
        if len(segments) < 2:
            return None
        self._folder.replace(days[0], segments[:1])
        return f"removed the oldest segment{self._name} of {days[0]}"

    def size_bytes(self) -> int:
        """Return how many bytes are stored."""
        placed = all_segments(self._root)
        known = self._sizes
        self._sizes = {path: known.get(path) or bytes_in(path) for _, path in placed}
        return sum(self._sizes.values())

    def clear_parts(self) -> None:
        """Remove what was written and did not come to be there."""
        if self._folder.is_open:
            self._folder.clear_parts()

    def close(self) -> None:
        """Let another process store."""
        self._folder.close()

    def _open_folder(self) -> None:
        try:
            self._folder.open()
        except OSError:
            # Half made, as on a full disk: made anew the next time.
            self._folder.close()
            raise
