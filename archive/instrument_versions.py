"""The instrument table as it was, at a version or a time. Reads the table's changes."""

from bisect import bisect_right
from collections import OrderedDict

from ingest.instrument_table.instrument_store import (
    InstrumentChange,
    InstrumentStore,
    TableLost,
)
from ingest.instrument_table.known_instruments import Instruments

KEPT = 8
"""This many tables are kept: of several jobs each may be at another version."""


class InstrumentVersions:
    """The tables of one store. Methods raise TableAway while its server is away.

    A table that was emptied is read from its beginning. Of a version that the store
    has forgotten, what is left of it counts.
    """

    def __init__(self, store: InstrumentStore) -> None:
        self._store = store
        self._read_upto = 0
        self._forget()

    def follow(self) -> None:
        """Learn of every change there is by now."""
        while True:
            try:
                page = self._store.read(self._read_upto)
            except TableLost:
                self._forget()
                continue
            for change in page.changes:
                self._versions.append(change.version)
                # A clock that was set back: a later change is no earlier one.
                earliest_ms = self._times_ms[-1] if self._times_ms else 0
                self._times_ms.append(max(change.changed_ms, earliest_ms))
            self._read_upto = page.version
            if page.is_last:
                return

    def version_at(self, moment_ms: int) -> int:
        """Return the newest version of a moment, as far as it was followed; or 0.

        A change of the same millisecond counts.
        """
        at = bisect_right(self._times_ms, moment_ms)
        return self._versions[at - 1] if at else 0

    def at(self, version: int) -> Instruments:
        if version in self._tables:
            self._tables.move_to_end(version)
            return self._tables[version]
        older = [known for known in self._tables if known < version]
        table = self._read_on(
            self._tables[max(older)] if older else Instruments(), version
        )
        self._tables[version] = table
        if len(self._tables) > KEPT:
            self._tables.popitem(last=False)
        return table

    def _read_on(self, base: Instruments, version: int) -> Instruments:
        changes: list[InstrumentChange] = []
        after = base.version
        while after < version:
            try:
                page = self._store.read(after)
            except TableLost:
                self._forget()
                return self._read_on(Instruments(), version)
            changes += [c for c in page.changes if c.version <= version]
            after = page.version
            if page.is_last:
                break
        return base.after(changes).at(version)

    def _forget(self) -> None:
        self._read_upto = 0
        self._versions: list[int] = []
        self._times_ms: list[int] = []
        self._tables: OrderedDict[int, Instruments] = OrderedDict()
