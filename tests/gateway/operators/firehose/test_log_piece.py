"""How much one look at the log may read."""

from gateway.operators.firehose.log_piece import (
    FIRST_ENTRIES,
    MOST_BYTES,
    MOST_ENTRIES,
    LogEntry,
    LogPiece,
    ReadBudget,
    share_out,
)


def make_piece(count: int, size: int, unread: int = 0) -> LogPiece:
    """Make a look that read so many entries of a size."""
    return LogPiece(count + unread, [LogEntry(0, b"x" * size)] * count)


def test_a_look_reads_no_more_than_entries_and_bytes_allow() -> None:
    """It begins with few, grows fourfold, and shrinks with large entries."""
    budget = ReadBudget()
    assert budget.entries == FIRST_ENTRIES
    budget.learn(make_piece(0, 0))
    assert budget.entries == FIRST_ENTRIES
    budget.learn(make_piece(3, 140))
    assert budget.entries == MOST_ENTRIES < 5 * FIRST_ENTRIES
    budget.learn(make_piece(250, 65_536))
    assert budget.entries == MOST_BYTES // 65_536
    budget.learn(make_piece(4, 140))
    assert budget.entries == 4 * (MOST_BYTES // 65_536)
    budget.learn(make_piece(4, 10 * MOST_BYTES))
    assert budget.entries == 1


def test_partitions_share_what_may_be_read() -> None:
    """In proportion to how they grew; one that grew at all is read."""
    assert share_out({0: 3, 1: 0, 2: 7}, most=10) == {0: 3, 2: 7}
    assert share_out({0: 300, 1: 0, 2: 100}, most=100) == {0: 75, 2: 25}
    assert share_out({0: 1, 1: 9_999}, most=10) == {0: 1, 1: 9}


def test_bytes_that_were_not_read_are_estimated() -> None:
    """By the mean of those that were, also when none was."""
    budget = ReadBudget()
    assert budget.bytes_of(make_piece(10, 100)) == 1_000
    budget.learn(make_piece(10, 100))
    assert budget.bytes_of(make_piece(10, 100, unread=90)) == 10_000
    assert budget.bytes_of(LogPiece(7)) == 700
