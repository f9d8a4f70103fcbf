"""Counts what an archive in PostgreSQL holds."""

import psycopg

from archive.account import PartitionOf, Place
from archive.archiver import SinkRefused
from archive.contract.segment import Segment
from archive.postgres.postgres_sink import RUNS
from ingest.process.redact import server_address

_WITHIN = """
"window" BETWEEN to_timestamp(%s / 1000.0) AND to_timestamp(%s / 1000.0)
"""
_WINDOWS = f"""
SELECT epoch, "offset", (extract(epoch FROM "window") * 1000)::bigint, rows
FROM tickthrottle_windows WHERE {_WITHIN}
"""
_ISINS = f"SELECT DISTINCT isin FROM tickthrottle_rows WHERE {_WITHIN}"
_ROWS = f"""
SELECT epoch, "offset", partition, count(*)
FROM tickthrottle_rows
JOIN unnest(%s::text[], %s::int[]) AS partitions (isin, partition) USING (isin)
WHERE {_WITHIN}
GROUP BY epoch, "offset", partition
"""


class PostgresCounts:
    """What is stored, by the tables. Methods raise SinkRefused."""

    def __init__(self, url: str) -> None:
        self._url = url

    def segments(self) -> list[Segment]:
        """Return each run of windows without a hole."""
        return [Segment(*row) for row in self._ask(RUNS)]

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]:
        """Return place, end and number of rows of each window."""
        found = self._ask(_WINDOWS, first_ms, last_ms)
        return [((epoch, offset), end, rows) for epoch, offset, end, rows in found]

    def rows(
        self, first_ms: int, last_ms: int, partition: PartitionOf
    ) -> list[tuple[Place, int, int]]:
        """Return place, partition and number of the rows of it, counted one by one."""
        isins = [isin for (isin,) in self._ask(_ISINS, first_ms, last_ms)]
        partitions = [partition(isin) for isin in isins]
        found = self._ask(_ROWS, isins, partitions, first_ms, last_ms)
        return [((epoch, offset), p, n) for epoch, offset, p, n in found]

    def _ask(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        try:
            with psycopg.connect(self._url, connect_timeout=5) as connection:
                return connection.execute(query.encode(), values).fetchall()
        except psycopg.Error as error:
            words = " ".join(str(error).split())
            address = server_address(self._url)
            raise SinkRefused(f"postgres_url {address}: {words}") from None
