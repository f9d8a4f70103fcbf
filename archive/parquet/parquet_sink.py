"""Stores windows, bars and statuses as Parquet files, all within the bounds.

Segments are merged as they grow; the oldest are removed.
"""

import shutil
from collections.abc import Callable
from datetime import date, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from archive.contract.merge_rule import choose_merge
from archive.contract.segment import Product, Segment, day_of
from archive.parquet.bar_table import StoredBars
from archive.parquet.checked_file import Damaged
from archive.parquet.folder_lock import FolderLock
from archive.parquet.segment_files import (
    BarFiles,
    Pause,
    SegmentFiles,
    StatusFiles,
    WindowFiles,
)
from archive.parquet.segment_folder import (
    SegmentFolder,
    all_segments,
    bars_root,
    bytes_in,
    damaged_root,
    days_in,
    segments_aside,
    segments_in,
    statuses_root,
)
from archive.parquet.status_table import StoredStatuses
from archive.parquet.tables import StoredTables

_NAMES: dict[Product, str] = {
    "windows": "",
    "bars": " of bars",
    "statuses": " of statuses",
}


class ParquetSink:
    """The archive in a folder, of at most ``max_bytes`` and ``max_days`` (0: any).

    A ``Sink``. Windows are in its days, bars in the folder ``bars``, statuses in
    ``statuses``: either is made with the first of them. Methods raise OSError, and
    FolderLost once another process has taken the folder over; what was being stored
    then is not there, or is there as a whole.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        max_days: int,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._max_bytes, self._max_days = max_bytes, max_days
        self._lock = lock = FolderLock(root)
        self._checked_on: date | None = None
        self._stores: dict[Product, SegmentStore] = {
            "windows": SegmentStore(root, lock, at_step, WindowFiles()),
            "bars": SegmentStore(bars_root(root), lock, at_step, BarFiles()),
            "statuses": SegmentStore(statuses_root(root), lock, at_step, StatusFiles()),
        }

    def open(self) -> None:
        """Take the folder. Raises FolderLocked."""
        self._lock.take()
        for store in self._stores.values():
            store.begin()

    def stored(self) -> dict[Product, list[Segment]]:
        return {product: store.segments() for product, store in self._stores.items()}

    def store(
        self, segment: Segment, tables: StoredTables | StoredBars | StoredStatuses
    ) -> None:
        self._stores[tables.product].store(segment, tables)

    def tidy(self, newest_ms: int, pause: Pause = lambda: None) -> str | None:
        """Do one thing that there is to be done; say what, None if there is nothing.

        ``newest_ms`` is the end of the newest window. Of bars and statuses the newest
        day is their own. Damage comes first, then merges; what ``pause`` raises ends
        either.
        """
        try:
            if (today := day_of(newest_ms)) != self._checked_on:
                # Files may be damaged long after they were written.
                self._check_anew()
                self._checked_on = today
            for store in self._stores.values():
                if (done := store.check(pause)) is not None:
                    return done
            # Removed first: a disk without room lets nothing be merged.
            return self._remove(newest_ms) or self._merge(newest_ms, pause)
        except OSError:
            # Whatever stands in the way may be a segment that nobody can read.
            self._check_anew()
            raise

    def damaged(self) -> list[str]:
        """Return the paths of what was set aside, oldest day first."""
        roots = (store.root for store in self._stores.values())
        return [str(path) for root in roots for path in segments_aside(root)]

    def size_bytes(self) -> int:
        return sum(store.size_bytes() for store in self._stores.values())

    def interrupt(self) -> None:
        """Do nothing: a file system that hangs cannot be interrupted."""

    def close(self) -> None:
        for store in self._stores.values():
            store.close()
        self._lock.give_back()

    def _check_anew(self) -> None:
        for store in self._stores.values():
            store.checked.clear()

    def _merge(self, newest_ms: int, pause: Pause) -> str | None:
        for product, store in self._stores.items():
            days = store.days()
            if days:
                today = day_of(newest_ms) if product == "windows" else days[-1]
                if (done := store.merge(today, pause)) is not None:
                    return done
        return None

    def _remove(self, newest_ms: int) -> str | None:
        for product, store in self._stores.items():
            days = store.days()
            oldest = store.oldest_day()
            if self._max_days and days and oldest is not None and oldest < days[-1]:
                today = day_of(newest_ms) if product == "windows" else days[-1]
                if oldest <= today - timedelta(days=self._max_days):
                    return store.remove_oldest()
        if self.size_bytes() <= self._max_bytes:
            return None
        # Of one day, the windows first: they are more.
        ages = [(s.oldest_day(), n, s) for n, s in enumerate(self._stores.values())]
        for _, _, store in sorted((d, n, s) for d, n, s in ages if d is not None):
            if (done := store.remove_oldest()) is not None:
                return done
        return None


class SegmentStore(SegmentFolder):
    """One product's segments: stored, merged as they grow, removed.

    ``checked`` are the names of those that were looked at. One thread may ``store``
    while another one does everything else.
    """

    def __init__(
        self,
        root: Path,
        lock: FolderLock,
        at_step: Callable[[str], None],
        files: SegmentFiles,
    ) -> None:
        super().__init__(root, lock, at_step)
        self._files = files
        self._name = _NAMES[files.product]
        # Segments never change.
        self._sizes: dict[Path, int] = {}
        self.checked: set[str] = set()

    def begin(self) -> None:
        """Begin under a lock that was taken; a folder is made for something to store.

        That of the lock is there.
        """
        self.is_open = False
        self.checked.clear()
        if self.root.exists():
            self.open()

    def segments(self) -> list[Segment]:
        """Return each segment, in the order of publication."""
        return [segment for segment, _ in all_segments(self.root)]

    def days(self) -> list[date]:
        """Return the days of which something is stored, oldest first."""
        return list(days_in(self.root))

    def store(self, segment: Segment, tables: Any) -> None:
        """Store a segment: entries that follow each other, of one epoch and day."""
        if not self.is_open:
            self.open()
        with self.part(segment) as part:
            self._files.write(part, tables)
            self._at_step("written")
            self.add(day_of(segment.first_ms), segment)

    def check(self, pause: Pause) -> str | None:
        """Look at the segments that were not looked at yet; set a damaged one aside.

        Say which, None if there is none. ``pause`` is called before each.
        """
        for day, folder in days_in(self.root).items():
            for segment, path in segments_in(folder):
                if path.name not in self.checked:
                    pause()
                    try:
                        self._files.check(segment, path)
                    except Damaged as error:
                        return self._set_aside(day, segment, error)
                    self.checked.add(path.name)
        return None

    def merge(self, today: date, pause: Pause) -> str | None:
        """Merge some segments of a day; say what, None if there is nothing to do.

        A damaged one is set aside in place of it. What ``pause`` raises ends the merge.
        """
        for day, folder in days_in(self.root).items():
            paths = dict(segments_in(folder))
            chosen = choose_merge(list(paths), is_over=day < today)
            if not chosen:
                continue
            merged = reduce(Segment.join, chosen)
            sources = [paths[segment] for segment in chosen]
            try:
                with self.part(merged) as part:
                    self._files.merge(sources, part, pause, is_final=day < today)
                    self._at_step("merged")
                    self.replace(day, chosen, merged)
            except Damaged as error:
                name = error.path.parent.name
                damaged = next(segment for segment in chosen if segment.name == name)
                return self._set_aside(day, damaged, error)
            self.checked.add(merged.name)
            return f"merged {len(chosen)} segments{self._name} of {day}"
        return None

    def _set_aside(self, day: date, segment: Segment, error: Damaged) -> str:
        return f"set aside {self.set_aside(day, segment)}, because {error}"

    def oldest_day(self) -> date | None:
        """Return the oldest day of which something is there, damaged or not."""
        return min([*self.days(), *days_in(damaged_root(self.root))], default=None)

    def remove_oldest(self) -> str | None:
        """Remove the oldest day, of the only one the oldest segment; say what.

        What was set aside of a day goes with it. The newest segment stays: where the
        archive goes on is what is stored.
        """
        days = self.days()
        for day, folder in days_in(damaged_root(self.root)).items():
            if not days or day <= days[0]:
                shutil.rmtree(folder)
                return f"removed what was set aside{self._name} of {day}"
        if len(days) > 1:
            self.drop(days[0])
            return f"removed the day {days[0]}{self._name}"
        segments = self.segments()
        if len(segments) < 2:
            return None
        self.replace(days[0], segments[:1])
        return f"removed the oldest segment{self._name} of {days[0]}"

    def size_bytes(self) -> int:
        """Return how many bytes are stored, or set aside."""
        paths = [path for _, path in all_segments(self.root)]
        paths += segments_aside(self.root)
        sizes = self._sizes
        self._sizes = {path: sizes.get(path) or bytes_in(path) for path in paths}
        return sum(self._sizes.values())
