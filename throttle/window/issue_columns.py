"""The issue table as columns: what is joined, and what is looked up by it. Pure.

A join brings each row the place of its issue in the table, a small number; names and
prices are taken from there in the driver, for a whole column at once.
"""

from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ingest.issue_table.known_issues import Issues

PLACE = "place"
"""What a row gets by the join; null for an issue that is not in the table."""


class IssueColumns:
    """An issue table; ``version`` 0 stands for none."""

    def __init__(self, issues: Issues) -> None:
        self.issues = issues
        self.version = issues.version

    @cached_property
    def places(self) -> pa.Table:
        """The table that is joined: ISIN as ``key``, and ``place``."""
        keys = pa.array([entry.isin for entry in self.issues], pa.string())
        return pa.table({"key": keys, PLACE: pa.array(range(len(keys)), pa.int32())})

    @cached_property
    def _texts(self) -> dict[str, pa.Array]:
        return {
            name: pa.array([getattr(e, name) for e in self.issues], pa.string())
            for name in ("market", "sector", "prev_close")
        }

    def take(self, name: str, places: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return ``market``, ``sector`` or ``prev_close`` of places, null."""
        return pc.take(self._texts[name], places)

    def join(self, rows: pa.Table) -> pa.Table:
        """Return rows with their ``place``, by their ``key``: as Spark's join does."""
        return rows.append_column(PLACE, self.places_of(rows["key"]))

    def places_of(self, isins: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return the places of issues, null for those that are not in the table."""
        return pc.index_in(isins, self.places["key"].combine_chunks())


NO_ISSUES = IssueColumns(Issues())
"""The table before anybody has said anything."""
