"""Trades in the state are shown with their distance from their span's extremes."""

from decimal import Decimal

import orjson
import pyarrow as pa

from throttle.analytics.moves.held_trades import held_trades
from throttle.analytics.moves.recent_trades import SCHEMA

SECOND = 1_000_000


def test_each_trade_is_compared_with_the_span_that_ends_with_it() -> None:
    """Of its own instrument, in whatever order trades come; the oldest comes first."""
    rows = [
        ("B", 3 * SECOND, 1, 9, Decimal(7)),
        ("A", 12 * SECOND, 3, 7, Decimal("103")),
        ("A", 1 * SECOND, 1, 5, Decimal("100")),
        ("A", 5 * SECOND, 2, 6, Decimal("102.5")),
    ]
    table = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA
    )
    shown = [
        orjson.loads(held.body())
        for held in held_trades(table, {"move_span_ms": 10_000})
    ]
    assert [(row["isin"], row["time"] // SECOND, row["seq"]) for row in shown] == [
        *(("A", 1, 1), ("B", 3, 1), ("A", 5, 2), ("A", 12, 3))
    ]
    extremes = [(row["lowest"], row["price"], row["highest"]) for row in shown]
    assert extremes == [
        *((100, 100, 100), (7, 7, 7), (100, 102.5, 102.5), (102.5, 103, 103))
    ]
    assert [(row["rise"], row["fall"]) for row in shown] == [
        *((0, 0), (0, 0), (2.5, 0), (0.4878, 0))
    ]
