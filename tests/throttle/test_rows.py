"""From log entries to Spark's columns."""

from ingest.log import Entry
from ingest.trade import Trade
from throttle.cut import Cut
from throttle.rows import CUT_KEY, cut_row, decode_cuts, to_arrow, trade_row

TRADE = Trade("KR7005930003", 1_773_964_801_566_788, 7, "199400", "918", {"side": "B"})
APPENDED_MS = TRADE.time_us // 1000 + 5


def rows_of(payload: bytes, append_ms: int = APPENDED_MS, previous: int = 0) -> dict:
    """Return the one row of one entry."""
    entry = Entry(42, append_ms, payload)
    return to_arrow([trade_row(entry, 3, previous, 5_000)]).to_pylist()[0]


def test_a_trade_becomes_a_row_under_its_isin() -> None:
    """The payload travels whole; only what orders it is taken out."""
    row = rows_of(TRADE.to_wire())
    assert row["key"] == "KR7005930003"
    assert (row["time"], row["seq"], row["position"]) == (TRADE.time_us, 7, 42)
    assert row["partition"] == 3
    assert row["payload"] == TRADE.to_wire()
    assert row["reason"] is None
    assert row["append_time"].timestamp() == APPENDED_MS / 1000


def test_a_malformed_trade_is_a_row_of_its_own() -> None:
    """A refused trade keeps its bytes, its reason and its place in the log."""
    row = rows_of(b"not json")
    assert row["key"] == "!3:42"
    assert row["payload"] == b"not json"
    assert row["reason"] == "not_json"
    assert "not json" in row["error"]


def test_a_trade_from_the_future_is_refused_by_the_logs_clock() -> None:
    """The rule looks at the entry alone, so a re-run decides the same."""
    assert rows_of(TRADE.to_wire(), APPENDED_MS - 5_000)["reason"] is None
    late = rows_of(TRADE.to_wire(), APPENDED_MS - 5_006)
    assert late["reason"] == "future_time"


def test_a_straggler_counts_as_appended_after_the_cut() -> None:
    """Its window is the first one of the batch that reads it."""
    row = rows_of(TRADE.to_wire(), APPENDED_MS, previous=APPENDED_MS + 1_000)
    assert row["append_time"].timestamp() == (APPENDED_MS + 1_000) / 1000


def test_no_entries_make_an_empty_batch_with_all_types() -> None:
    """Spark checks the types of a batch without rows too."""
    batch = to_arrow([])
    assert batch.num_rows == 0
    assert batch.schema == to_arrow([cut_row(Cut(0, ()), Cut(2_000, ()))]).schema


def test_the_cut_travels_with_the_batch_in_its_last_window() -> None:
    """The publisher learns which windows a batch stands for, even empty ones."""
    start, end = Cut(4_000, (1, 2)), Cut(8_000, (5, 2))
    row = to_arrow([cut_row(start, end)]).to_pylist()[0]
    assert row["key"] == CUT_KEY
    assert row["append_time"].timestamp() == 7.999
    assert decode_cuts(row["payload"]) == (start, end)
