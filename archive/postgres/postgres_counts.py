"""Counts what an archive in PostgreSQL holds."""

import psycopg

from archive.account import Place
from archive.archiver import SinkRefused
from archive.contract.segment import Segment
from archive.postgres.postgres_sink import RUNS
from ingest.process.redact import server_address

_WINDOWS = """
SELECT epoch, "offset", (extract(epoch FROM "window") * 1000)::bigint, rows
FROM tickthrottle_windows WHERE "window" >= to_timestamp(%s / 1000.0)
"""
_ROWS = """
SELECT epoch, "offset", isin
FROM tickthrottle_rows WHERE "window" >= to_timestamp(%s / 1000.0)
"""


class PostgresCounts:
    """What is stored, by the tables. Methods raise SinkRefused."""

    def __init__(self, url: str) -> None:
        self._url = url

    def segments(self) -> list[Segment]:
        """Return each run of windows without a hole."""
        return [Segment(*row) for row in self._ask(RUNS)]

    def windows(self, first_ms: int) -> list[tuple[Place, int, int]]:
        """Return place, end and number of rows of each window since then."""
        found = self._ask(_WINDOWS, first_ms)
        return [((epoch, offset), end, rows) for epoch, offset, end, rows in found]

    def rows(self, first_ms: int) -> list[tuple[Place, str]]:
        """Return place and ISIN of each row since then."""
        return [((epoch, offset), i) for epoch, offset, i in self._ask(_ROWS, first_ms)]

    def _ask(self, query: str, *values: int) -> list[tuple]:  # type: ignore[type-arg]
        try:
            with psycopg.connect(self._url, connect_timeout=5) as connection:
                return connection.execute(query.encode(), values).fetchall()
        except psycopg.Error as error:
            words = " ".join(str(error).split())
            address = server_address(self._url)
            raise SinkRefused(f"postgres_url {address}: {words}") from None
