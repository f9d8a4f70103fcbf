"""Stores windows and bars as Parquet files, and keeps both within the bounds."""

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

from archive.contract.segment import Product, Segment, day_of
from archive.parquet.bar_table import StoredBars
from archive.parquet.folder_lock import FolderLock
from archive.parquet.segment_files import BarFiles, WindowFiles
from archive.parquet.segment_folder import bars_root
from archive.parquet.segment_store import SegmentStore
from archive.parquet.tables import StoredTables


class ParquetSink:
    """The archive in a folder, of at most ``max_bytes`` and ``max_days`` (0: any).

    A ``Sink``. Windows are in the folder's days, bars in the folder ``bars``, which is
    made with the first of them. Methods raise OSError, and FolderLost once another
    process has taken the folder over; what was being stored then is not there, or is
    there as a whole.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        max_days: int,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._max_bytes, self._max_days = max_bytes, max_days
        self._lock = FolderLock(root)
        self._checked_on: date | None = None
        self._stores: dict[Product, SegmentStore] = {
            "windows": SegmentStore(root, WindowFiles(), self._lock, at_step),
            "bars": SegmentStore(
                bars_root(root), BarFiles(), self._lock, at_step, is_made_late=True
            ),
        }

    def open(self) -> None:
        """Take the folder. Raises FolderLocked."""
        self._lock.take()
        for store in self._stores.values():
            store.open()

    def stored(self) -> dict[Product, list[Segment]]:
        """Return each segment, in the order of publication."""
        return {product: store.segments() for product, store in self._stores.items()}

    def store(self, segment: Segment, tables: StoredTables | StoredBars) -> None:
        """Store entries of a log that follow each other, of one epoch and day."""
        self._stores[tables.product].store(segment, tables)

    def tidy(
        self, newest_ms: int, pause: Callable[[], None] = lambda: None
    ) -> str | None:
        """Do one thing that there is to be done; say what, None if there is nothing.

        ``newest_ms`` is the end of the newest window. Bars are of the exchange's clock:
        their newest day is their own. Damage comes first, then merges; what ``pause``
        raises ends either.
        """
        try:
            if (today := day_of(newest_ms)) != self._checked_on:
                # Files may be damaged long after they were written.
                self._check_anew()
                self._checked_on = today
            for store in self._stores.values():
                done = store.check(pause)
                if done is not None:
                    return done
            # Removed first: a disk without room lets nothing be merged.
            return self._remove(newest_ms) or self._merge(newest_ms, pause)
        except OSError:
            # Whatever stands in the way may be a segment that nobody can read.
            self._check_anew()
            raise

    def _check_anew(self) -> None:
        for store in self._stores.values():
            store.check_anew()

    def damaged(self) -> list[str]:
        """Return the paths of what was set aside, oldest day first."""
        return [str(p) for store in self._stores.values() for p in store.damaged()]

    def size_bytes(self) -> int:
        """Return how many bytes are stored."""
        return sum(store.size_bytes() for store in self._stores.values())

    def interrupt(self) -> None:
        """Do nothing: a file system that hangs cannot be interrupted."""

    def close(self) -> None:
        """Let another process store."""
        for store in self._stores.values():
            store.close()
        self._lock.give_back()

    def _merge(
        self, newest_ms: int, pause: Callable[[], None] = lambda: None
    ) -> str | None:
        windows, bars = self._stores["windows"], self._stores["bars"]
        done = windows.merge(day_of(newest_ms), pause)
        if done is None and (days := bars.days()):
            done = bars.merge(days[-1], pause)
        return done

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
            done = store.remove_oldest()
            if done is not None:
                return done
        return None
