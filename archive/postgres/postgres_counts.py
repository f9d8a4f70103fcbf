"""Counts what an archive in PostgreSQL holds."""

from datetime import date

import psycopg

from archive.account import BarKey, Edition, Place, RowCount
from archive.contract.segment import Product, Segment
from archive.postgres.postgres_sink import RUNS
from archive.storing.archive_sink import ArchiveCounts, SinkRefused
from ingest.process.redact import server_address

_WITHIN = """
"window" BETWEEN to_timestamp(%s / 1000.0) AND to_timestamp(%s / 1000.0)
"""
_WINDOWS = f"""
SELECT epoch, "offset", (extract(epoch FROM "window") * 1000)::bigint, rows
FROM tickthrottle_windows WHERE {_WITHIN}
"""
_ROWS = f"""
SELECT epoch, "offset", count(*) FROM tickthrottle_rows WHERE {_WITHIN}
GROUP BY epoch, "offset"
"""
_BARS_WITHIN = """
start + width_ms * interval '1 ms'
BETWEEN to_timestamp(%s / 1000.0) AND to_timestamp(%s / 1000.0)
"""
_BARS = f"""
SELECT isin, (extract(epoch FROM start) * 1000)::bigint, width_ms, revision, trades
FROM tickthrottle_bars WHERE {_BARS_WITHIN}
"""
_BAR_COUNTS = f"""
SELECT width_ms, count(*) FROM tickthrottle_bars WHERE {_BARS_WITHIN} GROUP BY width_ms
"""
_BAR_LINES = """
SELECT tickthrottle_day(last_end), sum(bars)::bigint
FROM tickthrottle_bar_batches GROUP BY 1
"""


class PostgresCounts(ArchiveCounts):
    """What is stored, by the tables. Methods raise SinkRefused."""

    def __init__(self, url: str) -> None:
        self._url = url

    def segments(self, product: Product = "windows") -> list[Segment]:
        return [Segment(*row) for row in self._ask(RUNS[product])]

    def windows(self, first_ms: int, last_ms: int) -> list[tuple[Place, int, int]]:
        windows = self._ask(_WINDOWS, first_ms, last_ms)
        return [((epoch, offset), end, rows) for epoch, offset, end, rows in windows]

    def rows(self, first_ms: int, last_ms: int) -> list[RowCount]:
        counts = self._ask(_ROWS, first_ms, last_ms)
        return [((epoch, offset), None, n) for epoch, offset, n in counts]

    def bars(self, first_ms: int, last_ms: int) -> dict[BarKey, Edition]:
        bars = self._ask(_BARS, first_ms, last_ms)
        return {(i, start, width): (rev, n) for i, start, width, rev, n in bars}

    def bar_counts(self, first_ms: int, last_ms: int) -> dict[int, int]:
        return dict(self._ask(_BAR_COUNTS, first_ms, last_ms))

    def bar_lines(self) -> dict[date, int]:
        return dict(self._ask(_BAR_LINES))

    def _ask(self, query: str, *values: object) -> list[tuple]:  # type: ignore[type-arg]
        try:
            with psycopg.connect(self._url, connect_timeout=5) as connection:
                return connection.execute(query.encode(), values).fetchall()
        except psycopg.Error as error:
            words = " ".join(str(error).split())
            address = server_address(self._url)
            raise SinkRefused(f"postgres_url {address}: {words}") from None
