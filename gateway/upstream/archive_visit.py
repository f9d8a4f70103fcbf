"""Who reads the archive: files that are opened are charged to him, while he waits.

A question runs in a thread, which nothing can end but the question itself: it looks
here before each file. The visit is a context variable, for a question goes through
stores that need not know who asks.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from gateway.admission.work import ROWS_A_SEGMENT


class VisitOver(Exception):
    """Whoever asked has gone."""


class ArchiveVisit:
    """One who reads the archive. ``opened`` counts the files read for him."""

    def __init__(self, address: str = "") -> None:
        self.address = address
        self.opened = 0
        self._is_over = False

    def end(self) -> None:
        """Have what is read for him end at the next file."""
        self._is_over = True

    def note_file(self) -> None:
        """Count a file that is about to be opened. Raises VisitOver."""
        if self._is_over:
            raise VisitOver
        self.opened += 1


_visit: ContextVar[ArchiveVisit | None] = ContextVar("archive visit", default=None)


def current_visit() -> ArchiveVisit:
    """Return whose visit this is; nobody's in particular outside of any."""
    return _visit.get() or ArchiveVisit()


@contextmanager
def visiting(address: str, charge: Callable[[int], None]) -> Iterator[ArchiveVisit]:
    """Have what is read within the block be charged, in rows, when it is over."""
    visit = ArchiveVisit(address)
    token = _visit.set(visit)
    try:
        yield visit
    finally:
        _visit.reset(token)
        charge(ROWS_A_SEGMENT * visit.opened)
