"""Stores windows in PostgreSQL: copied, then put in by their keys, in one transaction.

The tables are in ``schema.sql``, that of trading statuses in ``statuses.sql``. A price
is numeric: exact, with the digits that were published.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyarrow import csv

from archive.contract.segment import Product, Segment, day_of, span_of
from archive.parquet.bar_table import (
    BARS,
    BATCHES,
    KEY,
    PRICES,
    SUMS,
    StoredBars,
    newest_bars,
)
from archive.parquet.status_table import STATUS_PRICES, STATUSES, StoredStatuses
from archive.parquet.tables import (
    AMOUNTS,
    ROWS,
    WINDOWS,
    StoredTables,
    exact_digits,
)
from archive.postgres.postgres_session import PostgresSession
from archive.storing.archive_sink import Sink, SinkRefused
from ingest.process.redact import server_address

VERSION = 2
"""Of the tables. An archive of another version does not touch them."""

_HOUR_MS = 3_600_000

_PARTS: dict[Product, Sequence[tuple[str, str, Sequence[str], Sequence[str]]]] = {
    "windows": (
        ("tickthrottle_windows", "windows", WINDOWS.names, ()),
        (
            *("tickthrottle_rows", "rows"),
            [name for name in ROWS.names if not name.endswith("_text")],
            ("price", "size", *AMOUNTS),
        ),
    ),
    "bars": (
        ("tickthrottle_bar_batches", "batches", BATCHES.names, ()),
        ("tickthrottle_bars", "bars", BARS.names, (*PRICES, *SUMS)),
    ),
    "statuses": (
        (
            *("tickthrottle_statuses", "statuses", STATUSES.names),
            (*STATUS_PRICES, "last_price"),
        ),
    ),
}
"""Of each product its tables: the name, that of the lines, columns, and decimals."""

_RUNS = """
SELECT (extract(epoch FROM min(published)) * 1000)::bigint, min({number}),
       max({number}), epoch, (extract(epoch FROM min({first})) * 1000)::bigint,
       (extract(epoch FROM max({last})) * 1000)::bigint
FROM (SELECT *, {number} - row_number() OVER (PARTITION BY epoch, day
                                              ORDER BY {number}) AS run
      FROM (SELECT *, tickthrottle_day({last}) AS day
            FROM {table}) dated) numbered
GROUP BY epoch, day, run
"""
_END = '"window"'
RUNS: dict[Product, str] = {
    "windows": _RUNS.format(
        table="tickthrottle_windows", number='"offset"', first=_END, last=_END
    ),
    "bars": _RUNS.format(
        table="tickthrottle_bar_batches",
        number="number",
        first="first_end",
        last="last_end",
    ),
    # A status ends with the millisecond in which it was taken (``LoggedStatus``).
    "statuses": _RUNS.format(
        table="(SELECT epoch, number, taken AS published, "
        "date_trunc('ms', taken) + interval '1 ms' AS ends "
        "FROM tickthrottle_statuses) taken",
        number="number",
        first="ends",
        last="ends",
    ),
}

_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(to_regclass(name))), 0)::bigint
FROM unnest(%s::text[]) name
"""

# What is there is renewed by what has the same key; a bar only by a newer one.
_KEYS = {
    "tickthrottle_windows": ("epoch", "offset"),
    "tickthrottle_rows": ("epoch", "offset", "isin"),
    "tickthrottle_bar_batches": ("epoch", "number"),
    "tickthrottle_bars": KEY,
    "tickthrottle_statuses": ("epoch", "number"),
}
_TABLES = tuple(_KEYS)
_NEWER = (
    "WHERE (tickthrottle_bars.revision, tickthrottle_bars.trades) "
    "< (EXCLUDED.revision, EXCLUDED.trades)"
)

_DELETE: dict[Product, tuple[bytes, ...]] = {
    "windows": (
        b'DELETE FROM tickthrottle_windows WHERE "window" <= %s',
        b'DELETE FROM tickthrottle_rows WHERE "window" <= %s',
    ),
    "bars": (
        b"DELETE FROM tickthrottle_bar_batches WHERE last_end <= %s",
        b"DELETE FROM tickthrottle_bars WHERE start < %s",
    ),
    "statuses": (b"DELETE FROM tickthrottle_statuses WHERE taken < %s",),
}
_OLDEST: dict[Product, bytes] = {
    "windows": b'SELECT min("window") FROM tickthrottle_windows',
    "bars": b"SELECT min(first_end) FROM tickthrottle_bar_batches",
    "statuses": b"SELECT min(taken) + interval '1 ms' FROM tickthrottle_statuses",
}


class PostgresSink(Sink):
    """The archive in a database.

    ``max_days``: older ones are deleted; 0: none. ``name`` is the archive's: ``open``
    ends sessions of another process of it. Raises SinkAway for what may pass,
    SinkRefused for what does not.
    """

    def __init__(
        self,
        url: str,
        max_days: int,
        name: str,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._url = url
        self._max_days = max_days
        self._at_step = at_step
        self._storing, self._tidying = (PostgresSession(url, name) for _ in range(2))
        # The oldest and the newest day, for both threads.
        self._days: dict[Product, tuple[date, date]] = {}
        self._days_lock = threading.Lock()

    def open(self) -> None:
        self._storing.end_others()
        with self._storing.transaction() as cursor:
            self._check_version(cursor)

    def stored(self) -> dict[Product, list[Segment]]:
        """Return each day's runs of windows, entries of the bar log, and statuses."""
        stored: dict[Product, list[Segment]] = {}
        with self._storing.transaction() as cursor:
            for product, query in RUNS.items():
                cursor.execute(query.encode())
                stored[product] = [Segment(*row) for row in cursor.fetchall()]
        for product, segments in stored.items():
            for segment in segments:
                self._note(product, segment)
        return stored

    def store(
        self, segment: Segment, tables: StoredTables | StoredBars | StoredStatuses
    ) -> None:
        """Store entries of a log that follow each other; stored ones stay."""
        with self._storing.transaction() as cursor:
            for table, name, columns, decimals in _PARTS[tables.product]:
                lines = getattr(tables, name)
                if name == "bars":
                    # A key may be put in once at a time.
                    lines = newest_bars(lines)
                for decimal in decimals:
                    at = lines.schema.get_field_index(decimal)
                    lines = lines.set_column(at, decimal, exact_digits(lines, decimal))
                _copy(cursor, table, columns, lines.select(list(columns)))
                self._at_step("copied")
                _put(cursor, table, columns)
            self._at_step("put")
        self._at_step("committed")
        self._note(tables.product, segment)

    def tidy(
        self, newest_ms: int, pause: Callable[[], None] = lambda: None
    ) -> str | None:
        """Delete the oldest day if it is too old, an hour at a time.

        ``newest_ms`` is the end of the newest window; bars and statuses have their own
        newest.
        """
        if not self._max_days:
            return None
        with self._days_lock:
            days = dict(self._days)
        for product, (oldest, newest) in days.items():
            today = day_of(newest_ms) if product == "windows" else newest
            if oldest <= today - timedelta(days=self._max_days):
                self._delete(product, oldest, pause)
                name = "" if product == "windows" else f" of {product}"
                return f"removed the day {oldest}{name}"
        return None

    def _delete(self, product: Product, day: date, pause: Callable[[], None]) -> None:
        first_ms, last_ms = span_of(day)
        first = None
        for end_ms in range(first_ms - 1 + _HOUR_MS, last_ms + 1, _HOUR_MS):
            pause()
            with self._tidying.transaction() as cursor:
                for statement in _DELETE[product]:
                    cursor.execute(statement, [_moment(end_ms)])
                cursor.execute(_OLDEST[product])
                [(first,)] = cursor.fetchall()
        with self._days_lock:
            newest = self._days.pop(product)[1]
            if first is not None:
                oldest = day_of(round(first.timestamp() * 1_000))
                self._days[product] = oldest, max(oldest, newest)

    def _note(self, product: Product, segment: Segment) -> None:
        first, last = day_of(segment.first_ms), day_of(segment.last_ms)
        with self._days_lock:
            oldest, newest = self._days.get(product, (first, last))
            self._days[product] = min(oldest, first), max(newest, last)

    def size_bytes(self) -> int:
        """Return how many bytes the tables have, with their indexes."""
        with self._storing.transaction() as cursor:
            cursor.execute(_SIZE.encode(), [list(_TABLES)])
            [(size,)] = cursor.fetchall()
        return int(size)

    def interrupt(self) -> None:
        self._storing.interrupt()
        self._tidying.interrupt()

    def close(self) -> None:
        self._storing.close()
        self._tidying.close()

    def _check_version(self, cursor: psycopg.Cursor) -> None:
        if _make(cursor, "tickthrottle_archive", "schema.sql"):
            cursor.execute(
                "INSERT INTO tickthrottle_archive (version) VALUES (%s)", [VERSION]
            )
        cursor.execute("SELECT version FROM tickthrottle_archive")
        [(version,)] = cursor.fetchall()
        if version != VERSION:
            age = "an older" if version < VERSION else "a newer"
            raise self._refused(
                f"has tables of {age} version, {version}; this is {VERSION}"
            )
        # Later than the others, and of no other version: it is made beside them.
        _make(cursor, "tickthrottle_statuses", "statuses.sql")

    def _refused(self, text: str) -> SinkRefused:
        tables = ", ".join(("tickthrottle_archive", *_TABLES))
        return SinkRefused(
            f"postgres_url {server_address(self._url)}: {text}. Rename or drop them "
            f"({tables}), or name another database"
        )


def _make(cursor: psycopg.Cursor, table: str, script: str) -> bool:
    """Run what makes a table, unless it is there; return whether it was missing."""
    cursor.execute("SELECT to_regclass(%s) IS NULL", [table])
    [(is_missing,)] = cursor.fetchall()
    if is_missing:
        schema = files("archive.postgres").joinpath(script).read_text("utf-8")
        cursor.execute(schema.encode())
    return bool(is_missing)


def _moment(time_ms: int) -> datetime:
    return datetime.fromtimestamp(time_ms / 1_000, UTC)


def _copy(
    cursor: psycopg.Cursor, table: str, columns: Sequence[str], source: pa.Table
) -> None:
    """Copy a table into a temporary one like the stored one."""
    names = sql.Identifier(f"new_{table}"), sql.Identifier(table)
    cursor.execute(
        sql.SQL("CREATE TEMP TABLE {} (LIKE {}) ON COMMIT DROP").format(*names)
    )
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv)").format(
        names[0], sql.SQL(", ").join(map(sql.Identifier, columns))
    )
    with cursor.copy(statement) as copy:
        for batch in source.to_batches(max_chunksize=10_000):
            copy.write(_to_csv(pa.table(batch)))


def _put(cursor: psycopg.Cursor, table: str, columns: Sequence[str]) -> None:
    """Put copied lines where they belong, by their keys."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    keys = sql.SQL(", ").join(map(sql.Identifier, _KEYS[table]))
    news = (
        sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(column))
        for column in columns
        if column not in _KEYS[table]
    )
    cursor.execute(
        sql.SQL(
            "INSERT INTO {} ({names}) SELECT {names} FROM {} "
            "ON CONFLICT ({keys}) DO UPDATE SET {news} {only}"
        ).format(
            sql.Identifier(table),
            sql.Identifier(f"new_{table}"),
            names=names,
            keys=keys,
            news=sql.SQL(", ").join(news),
            only=sql.SQL(_NEWER if table == "tickthrottle_bars" else ""),
        )
    )


def _to_csv(table: pa.Table) -> bytes:
    columns = []
    for name in table.column_names:
        column = table[name]
        if pa.types.is_timestamp(column.type) or pa.types.is_decimal(column.type):
            column = pc.cast(column, pa.string())
        columns.append(column)
    output = pa.BufferOutputStream()
    options = csv.WriteOptions(include_header=False, quoting_style="needed")
    csv.write_csv(pa.table(columns, names=table.column_names), output, options)
    return bytes(output.getvalue())
