"""Stored rows add up to the trades that they stand for, in files and in a database."""

from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pytest
import redis

from archive.contract.logged import LoggedWindow, runs_of, segment_of
from archive.parquet.parquet_sink import ParquetSink
from archive.parquet.tables import build_tables
from archive.postgres.postgres_sink import PostgresSink
from archive.storing.archive_sink import Sink
from tests.archive.late_market import (
    EACH,
    make_trades,
    newest_of,
    publish_trades,
    row_of,
)
from tests.archive.postgres.server import PostgresServer
from tests.gateway.samples import LISTED, make_isins, make_snapshot
from throttle.contract.snapshot import WindowSnapshot

pytestmark = pytest.mark.redis
ISINS = make_isins(5)
BY_INSTRUMENT = """
SELECT isin, sum(trades), sum(volume), sum(value), max(high), min(low)
FROM {rows} GROUP BY isin ORDER BY isin
"""
PRICES = 'SELECT price FROM {rows} ORDER BY "window", isin'
AMOUNTS = 'SELECT trades, volume, value, high, low FROM {rows} ORDER BY "offset"'

Ask = Callable[[str], list[tuple[Any, ...]]]


def store(sink: Sink, windows: Sequence[WindowSnapshot], each: int = 7) -> None:
    """Store windows, a few at a time, and merge in between."""
    sink.open()
    for begin in range(0, len(windows), each):
        some = windows[begin : begin + each]
        for run in runs_of([LoggedWindow.decode(w.encode()) for w in some]):
            tables = build_tables(run, [1] * len(run), lambda _: LISTED, 2_000)
            sink.store(segment_of(run), tables)
        while sink.tidy(some[-1].window) is not None:
            continue
    sink.close()


@pytest.fixture(params=["files", "database"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Sink, Ask]:
    """An empty archive, and what answers a query about its ``{rows}``."""
    if request.param == "files":
        files = f"read_parquet('{tmp_path}/day=*/*/rows.parquet')"

        def ask_files(query: str) -> list[tuple[Any, ...]]:
            with duckdb.connect() as database:
                return database.sql(query.format(rows=files)).fetchall()

        return ParquetSink(tmp_path, 2**40, 0), ask_files
    server: PostgresServer = request.getfixturevalue("server")
    sink = PostgresSink(server.url(), 0, "sums")
    return sink, lambda query: server.ask(query.format(rows="tickthrottle_rows"))


def test_rows_add_up_to_the_trades(
    archive: tuple[Sink, Ask], client: redis.Redis, redis_url: str
) -> None:
    """Late ones, too, each by what it counts for; no price ever goes back."""
    sink, ask = archive
    trades = make_trades(ISINS, 1_500)
    windows = publish_trades(trades, client, redis_url)
    rows = [row for window in windows for row in window.rows]
    assert sum(row.sums.startswith(b"1,") for row in rows) > 20
    store(sink, windows)
    newest: list[str] = []
    for number, window in enumerate(windows, 1):
        seen = trades[: number * EACH]
        for isin in sorted(row.isin for row in window.rows):
            newest.append(newest_of([t for t in seen if t.isin == isin]).price)
    assert ask(PRICES) == [(Decimal(price),) for price in newest]
    stored = {isin: amounts for isin, *amounts in ask(BY_INSTRUMENT)}
    for isin in ISINS:
        of_instrument = [trade for trade in trades if trade.isin == isin]
        paid = [
            (Fraction(trade.price), Fraction(trade.size))
            for trade in of_instrument
            if trade.updates.volume
        ]
        prices = [
            Fraction(trade.price) for trade in of_instrument if trade.updates.range
        ]
        assert stored[isin] == [
            len(of_instrument),
            sum(size for _, size in paid),
            sum(price * size for price, size in paid),
            max(prices),
            min(prices),
        ]


def test_what_nobody_knows_is_null(archive: tuple[Sink, Ask]) -> None:
    """Of rows that say how many trades, and no more; of one trade all is known."""
    sink, ask = archive
    trades = make_trades(ISINS[:1], 1)
    row, price, size = row_of(trades), Decimal(trades[0].price), Decimal(trades[0].size)
    counts = b"1", b"0", b"37"
    bare = (row._replace(sums=trades) for trades in counts)
    store(sink, [make_snapshot(n, row) for n, row in enumerate(bare, 1)])
    assert ask(AMOUNTS) == [
        (1, size, price * size, price, price),
        (0, None, None, None, None),
        (37, None, None, None, None),
    ]


def test_a_sum_of_any_size_is_stored(archive: tuple[Sink, Ask]) -> None:
    """With all digits in a database; where no decimal holds them, as text in files."""
    sink, ask = archive
    row = row_of(make_trades(ISINS[:1], 1))
    texts = [f"{'9' * 30}.{'9' * 18}", f"{'9' * 40}.{'9' * 36}", "0.30", "0.10"]
    sums = ",".join(["9", *texts]).encode()
    store(sink, [make_snapshot(1, row._replace(sums=sums))])
    [(trades, *amounts)] = ask(AMOUNTS)
    assert trades == 9
    if isinstance(sink, PostgresSink):
        assert [str(amount) for amount in amounts[:2]] == texts[:2]
    else:
        assert amounts[:2] == [None, None]
        [digits] = ask("SELECT volume_text, value_text FROM {rows}")
        assert [*digits] == texts[:2]
    assert amounts[2:] == [Decimal("0.30"), Decimal("0.10")]
