"""Counts what an archive in PostgreSQL holds."""

from datetime import date

import psycopg

from archive.account import PartitionOf, Place
from archive.archiver import SinkRefused
from archive.bar_account import BarKey
from archive.contract.segment import Product, Segment
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
_BARS_WITHIN = """
start + width_ms * interval '1 ms'
BETWEEN to_timestamp(%s / 1000.0) AND to_timestamp(%s / 1000.0)
"""
_BARS = f"""
SELECT isin, (extract(epoch FROM start) * 1000)::bigint, width_ms, trades
FROM tickthrottle_bars WHERE {_BARS_WITHIN}
"""
_BAR_COUNTS = f"""
SELECT width_ms, count(*) FROM tickthrottle_bars WHERE {_BARS_WITHIN} GROUP BY width_ms
"""
# A bar that ends at midnight is of the day before.
_BAR_LINES = """
SELECT ((last_end - interval '1 ms') AT TIME ZONE 'UTC')::date, sum(bars)::bigint
FROM tickthrottle_bar_batches GROUP BY 1
"""


class PostgresCounts:
    """What is stored, by the tables. Methods raise SinkRefused."""

    def __init__(self, url: str) -> None:
        self._url = url

    def segments(self, product: Product = "windows") -> list[Segment]:
        """Return each run of windows, or of entries of the bar log, without a hole."""
        return [Segment(*row) for row in self._ask(RUNS[product])]

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

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, int]:
        """Return how many trades each bar has that ends then."""
        found = self._ask(_BARS, first_ms, last_ms)
        return {(isin, start, width): n for isin, start, width, n in found}

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        """Return how many bars of each width end then."""
        return dict(self._ask(_BAR_COUNTS, first_ms, last_ms))

    def bar_lines(self) -> dict[date, int]:
        """Return how many lines were stored of each day, an amended bar each time."""
        return dict(self._ask(_BAR_LINES))

    def _ask(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        try:
            with psycopg.connect(self._url, connect_timeout=5) as connection:
                return connection.execute(query.encode(), values).fetchall()
        except psycopg.Error as error:
            words = " ".join(str(error).split())
            address = server_address(self._url)
            raise SinkRefused(f"postgres_url {address}: {words}") from None
