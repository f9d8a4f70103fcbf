"""From log entries to Spark's columns."""

from typing import Any

import pyarrow as pa

from ingest.log import Chunk
from ingest.trade import Trade
from throttle.cut import Cut
from throttle.rows import (
    ARROW_SCHEMA,
    CUT_KEY,
    READ_KEY,
    combine,
    cut_row,
    decode_cuts,
    read_row,
    trade_rows,
)

TRADE = Trade("KR7005930003", 1_773_964_801_566_788, 7, "199400", "918", {"side": "B"})
APPENDED_MS = TRADE.time_us // 1000 + 5
W = 2_000


def make_chunk(*payloads: bytes, append_ms: int = APPENDED_MS) -> Chunk:
    """Make the entries of one append, at positions 42, 43, ..."""
    return Chunk(
        pa.array(range(42, 42 + len(payloads)), pa.int64()),
        pa.array([append_ms] * len(payloads), pa.int64()),
        pa.array(payloads, pa.binary()),
    )


def row_of(payload: bytes, append_ms: int = APPENDED_MS, previous: int = 0) -> Any:
    """Return the one row of one entry."""
    table = trade_rows(make_chunk(payload, append_ms=append_ms), 3, previous, 5_000)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    return row


def test_a_trade_becomes_a_row_under_its_isin() -> None:
    """The payload travels whole; only what orders it is taken out."""
    row = row_of(TRADE.to_wire())
    assert row["key"] == "KR7005930003"
    assert (row["time"], row["seq"], row["position"]) == (TRADE.time_us, 7, 42)
    assert (row["partition"], row["trades"]) == (3, 1)
    assert row["payload"] == TRADE.to_wire()
    assert (row["reason"], row["error"]) == (None, None)
    assert row["append_time"].timestamp() == APPENDED_MS / 1000


def test_a_malformed_trade_is_a_row_of_its_own() -> None:
    """A refused trade keeps its bytes, its reason and its place in the log."""
    row = row_of(b"not json")
    assert row["key"] == "!42"
    assert (row["partition"], row["position"], row["trades"]) == (3, 42, 1)
    assert row["payload"] == b"not json"
    assert row["reason"] == "not_json"
    assert "not json" in row["error"]


def test_a_trade_from_the_future_is_refused_by_the_logs_clock() -> None:
    """The rule looks at the entry alone, so a re-run decides the same."""
    assert row_of(TRADE.to_wire(), APPENDED_MS - 5_000)["reason"] is None
    late = row_of(TRADE.to_wire(), APPENDED_MS - 5_006)
    assert late["reason"] == "future_time"


def test_a_straggler_counts_as_appended_after_the_cut() -> None:
    """Its window is the first one of the batch that reads it, valid or refused."""
    for payload in (TRADE.to_wire(), b"not json"):
        row = row_of(payload, APPENDED_MS, previous=APPENDED_MS + 1_000)
        assert row["append_time"].timestamp() == (APPENDED_MS + 1_000) / 1000


def test_no_entries_make_no_rows_with_all_types() -> None:
    """Spark checks the types of a batch without rows too."""
    table = trade_rows(make_chunk(), 3, 0, 5_000)
    assert table.num_rows == 0
    assert table.schema == ARROW_SCHEMA
    assert combine(table, W).schema == ARROW_SCHEMA


def test_the_cut_travels_with_the_batch_in_its_last_window() -> None:
    """The publisher learns which windows a batch stands for, even empty ones."""
    start, end = Cut(4_000, (1, 2), (1, None)), Cut(8_000, (5, 2), (5, 2))
    table = cut_row(start, end)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert row["key"] == CUT_KEY
    assert row["trades"] == 0
    assert row["append_time"].timestamp() == 7.999
    assert decode_cuts(row["payload"]) == (start, end)


def test_what_was_read_travels_with_the_batch() -> None:
    """The reader's own count is what the ledger's other figures must add up to."""
    table = read_row(1, 4_711, Cut(8_000, (5, 2), (5, 2)))
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert (row["key"], row["partition"], row["trades"]) == (READ_KEY, 1, 4_711)
    assert row["append_time"].timestamp() == 7.999
