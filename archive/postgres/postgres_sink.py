"""Stores windows in PostgreSQL: copied, then put in by their keys, in one transaction.

The tables are in ``schema.sql``. A price is numeric: exact, with the digits that were
published.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from importlib.resources import files

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql
from pyarrow import csv

from archive.archiver import SinkAway, SinkRefused
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
from archive.parquet.tables import ROWS, StoredTables
from ingest.process.redact import server_address

VERSION = 1
"""Of the tables. An archive of another version does not touch them."""

CONNECT_S = 5

_SETTLED_S = 60

_WINDOWS = (
    *("epoch", "offset", "window", "published", "window_ms"),
    *("rows", "trades", "unknown_issues", "issue_version"),
)
_ROWS = tuple(n for n in ROWS.names if n not in ("price_text", "size_text"))

_Part = tuple[str, tuple[str, ...], pa.Table]
"""A table, its columns that are stored, and lines for it."""

_TABLES = (
    *("tickthrottle_windows", "tickthrottle_rows"),
    *("tickthrottle_bar_batches", "tickthrottle_bars"),
)

# Each run of numbers without a hole, as a segment's name says it.
RUNS: dict[Product, str] = {
    "windows": """
SELECT (extract(epoch FROM min(published)) * 1000)::bigint, min("offset"),
       max("offset"), epoch, (extract(epoch FROM min("window")) * 1000)::bigint,
       (extract(epoch FROM max("window")) * 1000)::bigint
FROM (SELECT *, "offset" - row_number() OVER (PARTITION BY epoch ORDER BY "offset")
      AS run FROM tickthrottle_windows) numbered
GROUP BY epoch, run
""",
    "bars": """
SELECT (extract(epoch FROM min(published)) * 1000)::bigint, min(number),
       max(number), epoch, (extract(epoch FROM min(first_end)) * 1000)::bigint,
       (extract(epoch FROM max(last_end)) * 1000)::bigint
FROM (SELECT *, number - row_number() OVER (PARTITION BY epoch ORDER BY number)
      AS run FROM tickthrottle_bar_batches) numbered
GROUP BY epoch, run
""",
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
}
_NEWER = "WHERE tickthrottle_bars.trades < EXCLUDED.trades"

_DELETE: dict[Product, tuple[bytes, ...]] = {
    "windows": (
        b'DELETE FROM tickthrottle_windows WHERE "window" <= %s',
        b'DELETE FROM tickthrottle_rows WHERE "window" <= %s',
    ),
    "bars": (
        b"DELETE FROM tickthrottle_bar_batches WHERE last_end <= %s",
        b"DELETE FROM tickthrottle_bars WHERE start < %s",
    ),
}
_OLDEST: dict[Product, bytes] = {
    "windows": b'SELECT min("window") FROM tickthrottle_windows',
    "bars": b"SELECT min(first_end) FROM tickthrottle_bar_batches",
}

# Of what the server says, what no waiting cures, wherever it has no code.
_LASTING_WORDS = (
    "authentication failed",
    "no password supplied",
    "does not exist",
    "no pg_hba.conf entry",
    "invalid",
)
# The class of a code: connection, resources, shutdown, a lost race, a transaction that
# was read-only, because a standby has not taken over yet.
_PASSING_CODES = ("08", "53", "57P", "40", "25006", "55P03", "58")


class PostgresSink:
    """The archive in a database; a ``Sink``.

    ``max_days``: older ones are deleted; 0: none. Raises SinkAway for what may pass,
    SinkRefused for what does not.
    """

    def __init__(
        self,
        url: str,
        max_days: int,
        at_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._url = url
        self._max_days = max_days
        self._at_step = at_step
        self._connection: psycopg.Connection | None = None
        # The oldest and the newest day.
        self._days: dict[Product, tuple[date, date]] = {}

    def open(self) -> dict[Product, list[Segment]]:
        """Make the tables if there are none; return what is stored."""
        stored: dict[Product, list[Segment]] = {}
        with self._transaction() as cursor:
            self._check_version(cursor)
            for product, query in RUNS.items():
                cursor.execute(query.encode())
                stored[product] = [Segment(*row) for row in cursor.fetchall()]
        for product, segments in stored.items():
            for segment in segments:
                self._note(product, segment)
        return stored

    def store(self, segment: Segment, tables: StoredTables | StoredBars) -> None:
        """Store entries of a log that follow each other; stored ones stay."""
        parts = (
            _parts_of_bars(tables)
            if isinstance(tables, StoredBars)
            else _parts_of_windows(tables)
        )
        with self._transaction() as cursor:
            for table, columns, source in parts:
                _copy(cursor, table, columns, source.select(list(columns)))
                self._at_step("copied")
                _put(cursor, table, columns)
            self._at_step("put")
        self._at_step("committed")
        self._note(tables.product, segment)

    def tidy(self, newest_ms: int) -> str | None:
        """Delete the oldest day if it is too old.

        ``newest_ms`` is the end of the newest window; of bars it is their own newest.
        """
        if not self._max_days:
            return None
        for product, (oldest, newest) in self._days.items():
            today = day_of(newest_ms) if product == "windows" else newest
            if oldest <= today - timedelta(days=self._max_days):
                self._delete(product, oldest)
                name = " of bars" if product == "bars" else ""
                return f"removed the day {oldest}{name}"
        return None

    def _delete(self, product: Product, day: date) -> None:
        last = datetime.fromtimestamp(span_of(day)[1] / 1_000, UTC)
        with self._transaction() as cursor:
            for statement in _DELETE[product]:
                cursor.execute(statement, [last])
            cursor.execute(_OLDEST[product])
            [(first,)] = cursor.fetchall()
        newest = self._days.pop(product)[1]
        if first is not None:
            oldest = day_of(round(first.timestamp() * 1_000))
            self._days[product] = oldest, max(oldest, newest)

    def _note(self, product: Product, segment: Segment) -> None:
        first, last = day_of(segment.first_ms), day_of(segment.last_ms)
        oldest, newest = self._days.get(product, (first, last))
        self._days[product] = min(oldest, first), max(newest, last)

    def size_bytes(self) -> int:
        """Return how many bytes the tables have, with their indexes."""
        with self._transaction() as cursor:
            cursor.execute(_SIZE.encode(), [list(_TABLES)])
            [(size,)] = cursor.fetchall()
        return int(size)

    def close(self) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _check_version(self, cursor: psycopg.Cursor) -> None:
        found = "SELECT to_regclass('tickthrottle_archive') IS NOT NULL"
        cursor.execute(found)
        [(is_there,)] = cursor.fetchall()
        if not is_there:
            cursor.execute("SELECT to_regclass('tickthrottle_windows') IS NOT NULL")
            [(is_older,)] = cursor.fetchall()
            if is_older:
                raise self._refused("has tables of an older version, without a number")
            _make_tables(cursor)
            cursor.execute(
                "INSERT INTO tickthrottle_archive (version) VALUES (%s)", [VERSION]
            )
            return
        cursor.execute("SELECT version FROM tickthrottle_archive")
        [(version,)] = cursor.fetchall()
        if version != VERSION:
            age = "an older" if version < VERSION else "a newer"
            raise self._refused(
                f"has tables of {age} version, {version}; this is {VERSION}"
            )
        cursor.execute("SELECT to_regclass('tickthrottle_bars') IS NOT NULL")
        [(has_bars,)] = cursor.fetchall()
        if not has_bars:
            _make_tables(cursor)

    def _refused(self, text: str) -> SinkRefused:
        tables = ", ".join(("tickthrottle_archive", *_TABLES))
        return SinkRefused(
            f"postgres_url {server_address(self._url)}: {text}. Rename or drop them "
            f"({tables}), or name another database"
        )

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Cursor]:
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(
                    self._url,
                    connect_timeout=CONNECT_S,
                    application_name="tickthrottle archive",
                    # A server that is gone without a word is noticed.
                    options="-c statement_timeout=300000 -c timezone=UTC",
                    keepalives_idle=10,
                    tcp_user_timeout=_SETTLED_S * 1_000,
                )
            with self._connection.transaction(), self._connection.cursor() as cursor:
                yield cursor
        except psycopg.Error as error:
            self.close()
            address = server_address(self._url)
            words = " ".join(str(error).split())
            # The address that was tried may be shown, never a password.
            sentence = f"postgres_url {address}: {words}"
            if _may_pass(error, words):
                raise SinkAway(sentence) from None
            raise SinkRefused(sentence) from None


def _make_tables(cursor: psycopg.Cursor) -> None:
    schema = files("archive.postgres").joinpath("schema.sql").read_text("utf-8")
    cursor.execute(schema.encode())


def _may_pass(error: psycopg.Error, words: str) -> bool:
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_PASSING_CODES)
    if not isinstance(error, psycopg.OperationalError):
        return False
    return not any(word in words for word in _LASTING_WORDS)


def _copy(
    cursor: psycopg.Cursor, table: str, columns: tuple[str, ...], source: pa.Table
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


def _put(cursor: psycopg.Cursor, table: str, columns: tuple[str, ...]) -> None:
    """Put copied lines where they belong, by their keys."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    keys = sql.SQL(", ").join(map(sql.Identifier, _KEYS[table]))
    others = (column for column in columns if column not in _KEYS[table])
    news = (
        sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(column))
        for column in others
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


def _parts_of_windows(tables: StoredTables) -> Sequence[_Part]:
    rows = tables.rows
    for name in ("price", "size"):
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, name, rows[f"{name}_text"])
    return (
        ("tickthrottle_windows", _WINDOWS, tables.windows),
        ("tickthrottle_rows", _ROWS, rows),
    )


def _parts_of_bars(tables: StoredBars) -> Sequence[_Part]:
    # A key may be put in once at a time.
    bars = newest_bars(tables.bars)
    for name in (*PRICES, *SUMS):
        texts = _without_zeros(pc.cast(bars[name], pa.string()))
        bars = bars.set_column(bars.schema.get_field_index(name), name, texts)
    return (
        ("tickthrottle_bar_batches", tuple(BATCHES.names), tables.batches),
        ("tickthrottle_bars", tuple(BARS.names), bars),
    )


def _without_zeros(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals without zeros at their end, as they were published."""
    for pattern in (r"^([0-9]+)\.0*$", r"^([0-9]+\.[0-9]*[1-9])0*$"):
        texts = pc.replace_substring_regex(texts, pattern, r"\1")
    return texts


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
