"""The segments of one product in a folder: stored, merged as they grow, removed."""

import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

from archive.contract.merge_rule import choose_merge
from archive.contract.segment import Product, Segment, day_of
from archive.parquet.damage import Damaged
from archive.parquet.folder_lock import FolderLock
from archive.parquet.segment_files import SegmentFiles
from archive.parquet.segment_folder import (
    SegmentFolder,
    all_segments,
    bytes_in,
    damaged_root,
    days_in,
    segments_aside,
    segments_in,
)

_NAMES: dict[Product, str] = {"windows": "", "bars": " of bars"}


class SegmentStore:
    """One product's part of an archive. Methods raise OSError, and FolderLost; what was
    being done then is not there, or is there as a whole.

    ``is_made_late``: the folder is made when there is something to store. One thread
    may ``store`` while another one does everything else.
    """

    def __init__(
        self,
        root: Path,
        files: SegmentFiles,
        lock: FolderLock,
        at_step: Callable[[str], None],
        *,
        is_made_late: bool = False,
    ) -> None:
        self._root = root
        self._files = files
        self._at_step = at_step
        self._is_made_late = is_made_late
        self._folder = SegmentFolder(root, lock, at_step)
        self._name = _NAMES[files.product]
        # Segments never change.
        self._sizes: dict[Path, int] = {}
        self._checked: set[str] = set()

    def open(self) -> None:
        """Begin under a lock that was taken."""
        self._folder.is_open = False
        self.check_anew()
        if self._root.exists() or not self._is_made_late:
            self._folder.open()

    def segments(self) -> list[Segment]:
        """Return each segment, in the order of publication."""
        return [segment for segment, _ in all_segments(self._root)]

    def days(self) -> list[date]:
        """Return the days of which something is stored, oldest first."""
        return list(days_in(self._root))

    def store(self, segment: Segment, tables: Any) -> None:
        """Store a segment: entries that follow each other, of one epoch and day."""
        if not self._folder.is_open:
            self._folder.open()
        with self._folder.part(segment) as part:
            self._files.write(part, tables)
            self._at_step("written")
            self._folder.add(day_of(segment.first_ms), segment)

    def check(self, pause: Callable[[], None]) -> str | None:
        """Look at the segments that were not looked at yet; set a damaged one aside.

        Say which, None if there is none. ``pause`` is called before each.
        """
        for day, folder in days_in(self._root).items():
            for segment, path in segments_in(folder):
                if path.name not in self._checked:
                    pause()
                    try:
                        self._files.check(segment, path)
                    except Damaged as error:
                        return self._set_aside(day, segment, error)
                    self._checked.add(path.name)
        return None

    def check_anew(self) -> None:
        """Have ``check`` look at every segment again."""
        self._checked.clear()

    def merge(self, today: date, pause: Callable[[], None]) -> str | None:
        """Merge some segments of a day; say what, None if there is nothing to do.

        A damaged one is set aside in place of it. What ``pause`` raises ends the merge.
        """
        for day, folder in days_in(self._root).items():
            paths = dict(segments_in(folder))
            chosen = choose_merge(list(paths), is_over=day < today)
            if chosen:
                merged = chosen[0]
                for later in chosen[1:]:
                    merged = merged.join(later)
                sources = [paths[segment] for segment in chosen]
                try:
                    with self._folder.part(merged) as part:
                        self._files.merge(sources, part, pause, is_final=day < today)
                        self._at_step("merged")
                        self._folder.replace(day, chosen, merged)
                except Damaged as error:
                    damaged = next(
                        s for s in chosen if s.name == error.path.parent.name
                    )
                    return self._set_aside(day, damaged, error)
                self._checked.add(merged.name)
                return f"merged {len(chosen)} segments{self._name} of {day}"
        return None

    def damaged(self) -> list[Path]:
        """Return what was set aside, oldest day first."""
        return segments_aside(self._root)

    def _set_aside(self, day: date, segment: Segment, error: Damaged) -> str:
        place = self._folder.set_aside(day, segment)
        return f"set aside {place}, because {error}"

    def oldest_day(self) -> date | None:
        """Return the oldest day of which something is there, damaged or not."""
        return min([*self.days(), *days_in(damaged_root(self._root))], default=None)

    def remove_oldest(self) -> str | None:
        """Remove the oldest day, of the only one the oldest segment; say what.

        What was set aside of a day goes with it. The newest segment stays: where the
        archive goes on is what is stored.
        """
        days = self.days()
        for day, folder in days_in(damaged_root(self._root)).items():
            if not days or day <= days[0]:
                shutil.rmtree(folder)
                return f"removed what was set aside{self._name} of {day}"
        if len(days) > 1:
            self._folder.drop(days[0])
            return f"removed the day {days[0]}{self._name}"
        segments = self.segments()
        if len(segments) < 2:
            return None
        self._folder.replace(days[0], segments[:1])
        return f"removed the oldest segment{self._name} of {days[0]}"

    def size_bytes(self) -> int:
        """Return how many bytes are stored, or set aside."""
        paths = [*(path for _, path in all_segments(self._root)), *self.damaged()]
        sizes = self._sizes
        self._sizes = {path: sizes.get(path) or bytes_in(path) for path in paths}
        return sum(self._sizes.values())

    def close(self) -> None:
        """End: nothing is stored any more."""
        self._folder.close()
