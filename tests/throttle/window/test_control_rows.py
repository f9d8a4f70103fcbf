"""What a task says of itself travels with its rows."""

from throttle.contract.cut import Cut
from throttle.contract.ledger import Turnover
from throttle.window.control_rows import cut_row, decode_cuts, decode_read, read_row
from throttle.window.row_schema import ARROW_SCHEMA, CUT_KEY, READ_KEY


def test_the_cut_travels_with_the_batch_in_its_last_window() -> None:
    """The publisher learns which windows a batch stands for, even empty ones."""
    start, end = Cut(4_000, (1, 2), (1, None)), Cut(8_000, (5, 2), (5, 2))
    table = cut_row(start, end, read_ms=8_013, servers={"b2", "a1"})
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert row["key"] == CUT_KEY
    assert row["trades"] == 0
    assert row["append_time"].timestamp() == 7.999
    assert decode_cuts(row["payload"]) == (start, end, 8_013, {"a1", "b2"})


def test_what_was_read_travels_with_the_batch() -> None:
    """The reader's own count is what the ledger's other figures must add up to."""
    traded = Turnover(10**40, 3 * 10**60)
    table = read_row(1, 4_711, 12, Cut(8_000, (5, 2), (5, 2)), 5, traded)
    assert table.schema == ARROW_SCHEMA
    [row] = table.to_pylist()
    assert (row["key"], row["partition"], row["trades"]) == (READ_KEY, 1, 4_711)
    assert decode_read(row["payload"]) == (12, 5, traded)
    assert row["append_time"].timestamp() == 7.999
