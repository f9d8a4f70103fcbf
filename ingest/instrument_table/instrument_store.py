"""What keeps the instrument table: a stream of changes in Redis or in a topic. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ingest.instrument_table.instrument_change import InstrumentChange
from ingest.instrument_table.instrument_entry import InstrumentEntry

PAGE = 2_000
"""Most changes that are read at a time."""


class TableAway(RuntimeError):
    """The table's server cannot be reached now; it may be back later."""


class TableLost(RuntimeError):
    """The table is not the one that was read before: it is to be read from 0 again."""


class TableMoved(RuntimeError):
    """Somebody else has changed the table: it is to be read and compared again."""


@dataclass(frozen=True, slots=True)
class ChangePage:
    """Some changes, oldest first.

    ``version`` is the newest that was looked at, the one asked after if there was
    none. ``is_last`` says that there are no more for now. ``refused`` counts the
    entries that are no change (``decode_change``), which are left out.
    """

    changes: Sequence[InstrumentChange]
    version: int
    is_last: bool
    refused: int


class InstrumentStore(Protocol):
    """The instrument table, read and written; used by one thread at a time.

    A store remembers which table it reads: one that was emptied, or emptied and filled
    again, is another.
    """

    def read(self, after: int) -> ChangePage:
        """Return at most ``PAGE`` changes with versions greater than ``after``.

        Raises TableAway, and TableLost, once, if ``after`` is above 0 and of a table
        that is gone.
        """

    def append(
        self, changes: Sequence[tuple[str, InstrumentEntry | None]], after: int
    ) -> int:
        """Append changes, all or none; return the version of the last.

        ``after`` is the newest version that was known when they were chosen: raises
        TableMoved if it is not the newest any more, and TableAway, after which they may
        be there or not.
        """

    def close(self) -> None:
        """Give back what connects it to its server."""
