"""The instrument table as it was when windows were joined with it."""

from ingest.instrument_table.instrument_store import (
    InstrumentChange,
    InstrumentStore,
    TableLost,
)
from ingest.instrument_table.known_instruments import Instruments


class InstrumentTables:
    """Reads the table at a version, exactly or not at all.

    Changes are forgotten in time, and a table may be emptied: a version's digest says
    whether what is left is the table that was joined.
    """

    def __init__(self, store: InstrumentStore) -> None:
        self._store = store
        self._changes: list[InstrumentChange] = []
        self._upto = 0
        self._newest: dict[int, Instruments] = {}

    def at(self, version: int, digest: str) -> Instruments | None:
        """Return the table at a version, None if it is gone. Raises TableAway."""
        if version not in self._newest:
            if version > self._upto:
                self._read_on()
            changes = (c for c in self._changes if c.version <= version)
            self._newest = {version: Instruments().after(changes).at(version)}
        instruments = self._newest[version]
        return instruments if instruments.digest == digest else None

    def _read_on(self) -> None:
        while True:
            try:
                page = self._store.read(self._upto)
            except TableLost:
                self._changes, self._upto = [], 0
                continue
            self._changes += page.changes
            self._upto = page.version
            if page.is_last:
                return
