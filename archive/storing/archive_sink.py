"""Where windows, bars and statuses are kept: what is asked of files, a database and
topics.
"""

from collections.abc import Callable
from datetime import date
from typing import Protocol

from archive.account import BarKey, Edition, Place, RowCount
from archive.contract.archive_gap import ArchiveGap, find_gaps
from archive.contract.segment import Product, Segment
from archive.parquet.bar_table import StoredBars
from archive.parquet.status_table import StoredStatuses
from archive.parquet.tables import StoredTables
from tickthrottle_client.log_v1 import LogAway, LogUnusable

END_OF_TIME_MS = 2**53


class SinkAway(LogAway):
    """Nothing can be stored now; it may pass."""


class SinkRefused(LogUnusable):
    """Nothing can be stored where it should be, and no waiting cures that."""


class Sink(Protocol):
    """Where windows, bars and statuses are kept. Methods raise OSError or LogAway for
    what may pass, LogUnusable for what does not.

    ``open`` makes it this process's own: whoever had it before, and was frozen, stores
    nothing any more. ``stored`` says what is there of each product, whatever was tried
    before, and names none that it does not keep; ``store`` stores a segment as a whole
    or not at all, and one that is there changes nothing. ``tidy`` does one thing at a
    time and says what; it is called in a thread of its own, and calls ``pause`` now and
    then. ``damaged`` names what cannot be read any more and was set aside.
    ``interrupt``, in any thread, has a call that waits for an answer fail, if it can.
    Servers that look after their own files need nothing of the last three.
    """

    def open(self) -> None: ...

    def stored(self) -> dict[Product, list[Segment]]: ...

    def store(
        self, segment: Segment, tables: StoredTables | StoredBars | StoredStatuses
    ) -> None: ...

    def size_bytes(self) -> int: ...

    def close(self) -> None: ...

    def tidy(
        self, newest_ms: int, pause: Callable[[], None] = lambda: None
    ) -> str | None:
        return None

    def damaged(self) -> list[str]:
        return []

    def interrupt(self) -> None:
        return None


class ArchiveCounts(Protocol):
    """What an archive says of its contents, between two ends of windows.

    ``segments`` are each day's runs of windows, of entries of the bar log, or of
    statuses, without a hole; ``windows`` returns the place, end and number of rows of
    each window, ``rows`` how many rows of each window are there, counted one by one (in
    topics, in each partition), ``damage`` which files cannot be read: a database and
    brokers look after their own. ``bars`` returns the newest edition of each bar,
    ``bar_counts`` how many there are of each width; bounds are ends of bars.
    ``bar_lines`` is quick: how many lines were stored of each day, an amended bar each
    time. ``keeps`` are the products that there may be something of. Methods raise
    OSError and LogError.
    """

    keeps: tuple[Product, ...] = ("windows", "bars", "statuses")

    def segments(self, product: Product = "windows") -> list[Segment]: ...

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]: ...

    def rows(self, first_ms: int, last_ms: int) -> list[RowCount]: ...

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]: ...

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]: ...

    def bar_lines(self) -> dict[date, int]: ...

    def gaps(
        self, product: Product, first_ms: int = 0, last_ms: int = END_OF_TIME_MS
    ) -> list[ArchiveGap]:
        gaps = find_gaps(self.segments(product), product)
        return [gap for gap in gaps if gap.is_within(first_ms, last_ms)]

    def damage(self) -> list[str]:
        return []
