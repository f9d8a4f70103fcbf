"""The instrument table as columns: what is joined, and what is looked up by it. Pure.

A join brings each row the place of its instrument in the table, a small number; names
and prices are taken from there in the driver, for a whole column at once.
"""

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ingest.instrument_table.known_instruments import Instruments

PLACE = "place"
"""What a row gets by the join; null for an instrument that is not in the table."""


class InstrumentColumns:
    """An instrument table; ``version`` 0 stands for none."""

    def __init__(self, instruments: Instruments) -> None:
        self.instruments = instruments
        self.version = instruments.version

    @cached_property
    def places(self) -> pa.Table:
        """The table that is joined: ISIN as ``key``, and ``place``."""
        keys = pa.array([entry.isin for entry in self.instruments], pa.string())
        return pa.table({"key": keys, PLACE: pa.array(range(len(keys)), pa.int32())})

    @cached_property
    def _texts(self) -> dict[str, pa.Array]:
        return {
            name: pa.array([getattr(e, name) for e in self.instruments], pa.string())
            for name in ("market", "sector", "prev_close")
        }

    def take(self, name: str, places: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return ``market``, ``sector`` or ``prev_close`` of places, null."""
        return pc.take(self._texts[name], places)

    def join(self, rows: pa.Table) -> pa.Table:
        """Return rows with their ``place``, by their ``key``: as Spark's join does."""
        return rows.append_column(PLACE, self.places_of(rows["key"]))

    def places_of(self, isins: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the places of instruments, null for those not in the table."""
        return pc.index_in(isins, self.places["key"].combine_chunks())


NO_INSTRUMENTS = InstrumentColumns(Instruments())
"""The table before anybody has said anything."""
