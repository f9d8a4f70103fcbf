"""Stores windows as Parquet files, merges them, and keeps within the bounds."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from archive.contract.merge_rule import choose_merge
from archive.contract.segment import Segment, day_of
from archive.parquet.segment_files import merge_files, write_files
from archive.parquet.segment_folder import (
    SegmentFolder,
    all_segments,
    bytes_in,
    days_in,
    segments_in,
)
from archive.parquet.tables import StoredTables


class ParquetSink:
    """The archive in a folder, of at most ``max_bytes`` and ``max_days`` (0: any).

    A ``Sink``. Methods raise OSError; what was being stored then is not there, or is
    there as a whole.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        max_days: int,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._root = root
        self._max_bytes, self._max_days = max_bytes, max_days
        self._at_step = at_step
        self._folder = SegmentFolder(root, at_step)
        # Segments never change.
        self._sizes: dict[Path, int] = {}

    def open(self) -> list[Segment]:
        """Return what is stored. Raises FolderLocked."""
        self._folder.close()
        self._folder.open()
        return [segment for segment, _ in all_segments(self._root)]

    def store(self, segment: Segment, tables: StoredTables) -> None:
        """Store windows that follow each other, of one epoch and day."""
        try:
            part = self._folder.part(segment)
            write_files(part, tables.windows, tables.rows)
            self._at_step("written")
            self._folder.add(day_of(segment.first_ms), segment)
        except OSError:
            self._folder.clear_parts()
            raise

    def tidy(self, newest_ms: int) -> str | None:
        """Do one thing that there is to be done; say what, None if there is nothing.

        ``newest_ms`` is the end of the newest window.
        """
        try:
            return self._merge(day_of(newest_ms)) or self._remove(day_of(newest_ms))
        except OSError:
            self._folder.clear_parts()
            raise

    def size_bytes(self) -> int:
        """Return how many bytes are stored."""
        placed = all_segments(self._root)
        known = self._sizes
        self._sizes = {path: known.get(path) or bytes_in(path) for _, path in placed}
        return sum(self._sizes.values())

    def close(self) -> None:
        """Let another process store."""
        self._folder.close()

    def _merge(self, today: date) -> str | None:
        for day, folder in days_in(self._root).items():
            paths = dict(segments_in(folder))
            chosen = choose_merge(list(paths), is_over=day < today)
            if chosen:
                merged = chosen[0]
                for later in chosen[1:]:
                    merged = merged.join(later)
                part = self._folder.part(merged)
                sources = [paths[segment] for segment in chosen]
                merge_files(sources, part, is_final=day < today)
                self._at_step("merged")
                self._folder.replace(day, chosen, merged)
                return f"merged {len(chosen)} segments of {day}"
        return None

    def _remove(self, today: date) -> str | None:
        days = list(days_in(self._root))
        if not days:
            return None
        oldest = days[0]
        is_old = self._max_days and oldest <= today - timedelta(days=self._max_days)
        if not is_old and self.size_bytes() <= self._max_bytes:
            return None
        if len(days) > 1:
            self._folder.drop(oldest)
            return f"removed the day {oldest}"
        segments = [segment for segment, _ in segments_in(days_in(self._root)[oldest])]
        if len(segments) < 2:
            return None
        self._folder.replace(oldest, segments[:1])
        return f"removed the oldest segment of {oldest}"
