"""Where windows and bars are kept: what is asked of files and of a database."""

from collections.abc import Callable
from typing import Protocol

from archive.contract.segment import Product, Segment
from archive.parquet.bar_table import StoredBars
from archive.parquet.tables import StoredTables


class SinkAway(RuntimeError):
    """Nothing can be stored now; it may pass."""


class SinkRefused(RuntimeError):
    """Nothing can be stored where it should be, and no waiting cures that."""


class Sink(Protocol):
    """Where windows and bars are kept. Methods raise OSError or SinkAway for what may
    pass.

    ``open`` makes it this process's own: whoever had it before, and was frozen, stores
    nothing any more. ``stored`` says what is there of windows and of bars, whatever was
    tried before; ``store`` stores a segment as a whole or not at all, and one that is
    there changes nothing. ``tidy`` does one thing at a time and says what; it is called
    in a thread of its own, and calls ``pause`` now and then. ``damaged`` names what
    cannot be read any more and was set aside. ``interrupt``, in any thread, has a call
    that waits for an answer fail, if it can.
    """

    def open(self) -> None: ...

    def stored(self) -> dict[Product, list[Segment]]: ...

    def store(self, segment: Segment, tables: StoredTables | StoredBars) -> None: ...

    def tidy(
        self, newest_ms: int, pause: Callable[[], None] = lambda: None
    ) -> str | None: ...

    def damaged(self) -> list[str]: ...

    def size_bytes(self) -> int: ...

    def interrupt(self) -> None: ...

    def close(self) -> None: ...
