"""Stores windows and bars as Parquet files, and keeps both within the bounds."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from archive.contract.segment import Product, Segment, day_of
from archive.parquet.bar_table import StoredBars
from archive.parquet.segment_files import BarFiles, WindowFiles
from archive.parquet.segment_folder import bars_root
from archive.parquet.segment_store import SegmentStore
from archive.parquet.tables import StoredTables


class ParquetSink:
    """The archive in a folder, of at most ``max_bytes`` and ``max_days`` (0: any).

    A ``Sink``. Windows are in the folder's days, bars in the folder ``bars``, which is
    made with the first of them. Methods raise OSError; what was being stored then is
    not there, or is there as a whole.
    """

    def __init__(
        self,
        root: Path,
        max_bytes: int,
        max_days: int,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._max_bytes, self._max_days = max_bytes, max_days
        self._stores: dict[Product, SegmentStore] = {
            "windows": SegmentStore(root, WindowFiles(), at_step),
            "bars": SegmentStore(
                bars_root(root), BarFiles(), at_step, is_made_late=True
            ),
        }

    def open(self) -> dict[Product, list[Segment]]:
        """Return what is stored. Raises FolderLocked."""
        return {product: store.open() for product, store in self._stores.items()}

    def store(self, segment: Segment, tables: StoredTables | StoredBars) -> None:
        """Store entries of a log that follow each other, of one epoch and day."""
        with self._cleaning_up():
            self._stores[tables.product].store(segment, tables)

    def tidy(self, newest_ms: int) -> str | None:
        """Do one thing that there is to be done; say what, None if there is nothing.

        ``newest_ms`` is the end of the newest window. Bars are of the exchange's clock:
        their newest day is their own.
        """
        with self._cleaning_up():
            return self._merge(newest_ms) or self._remove(newest_ms)

    def size_bytes(self) -> int:
        """Return how many bytes are stored."""
        return sum(store.size_bytes() for store in self._stores.values())

    def close(self) -> None:
        """Let another process store."""
        for store in self._stores.values():
            store.close()

    def _merge(self, newest_ms: int) -> str | None:
        windows, bars = self._stores["windows"], self._stores["bars"]
        done = windows.merge(day_of(newest_ms))
        if done is None and (days := bars.days()):
            done = bars.merge(days[-1])
        return done

    def _remove(self, newest_ms: int) -> str | None:
        for product, store in self._stores.items():
            days = store.days()
            if self._max_days and len(days) > 1:
                today = day_of(newest_ms) if product == "windows" else days[-1]
                if days[0] <= today - timedelta(days=self._max_days):
                    return store.remove_oldest()
        if self.size_bytes() <= self._max_bytes:
            return None
        # Of one day, the windows first: they are more.
        kept = [store for store in self._stores.values() if store.days()]
        for store in sorted(kept, key=lambda store: store.days()[0]):
            done = store.remove_oldest()
            if done is not None:
                return done
        return None

    @contextmanager
    def _cleaning_up(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            for store in self._stores.values():
                store.clear_parts()
            raise
