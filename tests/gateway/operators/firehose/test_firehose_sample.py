"""What a viewer of the firehose is shown."""

import json
import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.operators.firehose.firehose_sample import (
    FIRST_ENTRIES,
    MOST_BYTES,
    MOST_ENTRIES,
    LogEntry,
    LogPiece,
    ReadBudget,
    RowAllowance,
    Sample,
    encode_row,
    share_out,
    thin,
)
from tests.doc_pages import text_of
from tests.gateway.operators.firehose.trade_log import make_payload
from tests.gateway.samples import SAMSUNG


@given(st.lists(st.integers(), max_size=60, unique=True), st.integers(0, 80))
def test_a_part_is_evenly_spread_and_in_order(items: list[int], most: int) -> None:
    """All of few; of many as many as may be, at even distances."""
    some = list(thin(items, most))
    assert len(some) == min(len(items), most)
    places = [items.index(item) for item in some]
    assert places == sorted(places)
    distances = {after - place for place, after in pairwise(places)}
    assert not distances or max(distances) - min(distances) <= 1


def test_a_row_is_a_trade_or_the_beginning_of_bytes() -> None:
    """Prices keep their text; what is no trade says why, and is short."""
    payload = make_payload(7).replace(b'"71500"', b'"0.30"')
    assert json.loads(encode_row(LogEntry(0, payload))) == {
        "isin": SAMSUNG,
        "price": "0.30",
        "size": "12",
        "time": 1_773_964_800_000_007,
        "bytes": len(payload),
    }
    row = json.loads(encode_row(LogEntry(0, b"A3" * 5_000)))
    assert (row["bytes"], row["reason"], row["text"]) == (
        10_000,
        "not_json",
        "A3" * 32,
    )
    digits = "9" * 18
    long = make_payload(1).replace(b"71500", f"{digits}.{digits}".encode())
    for worst in (b"\xff" * 70_000, b"\x00" * 70_000, b"", long):
        assert len(encode_row(LogEntry(0, worst))) <= 512


def test_a_viewer_is_shown_so_many_a_second() -> None:
    """What was not used is kept for a second, not for longer."""
    allowance = RowAllowance(rate=20)
    assert allowance.rows == 0
    allowance.grow(0.1)
    assert allowance.rows == 2
    allowance.use(2)
    allowance.grow(0.07)
    assert allowance.rows == 1
    allowance.grow(60)
    assert allowance.rows == 20


def test_what_a_slow_viewer_is_kept_is_bounded_and_balances() -> None:
    """The oldest rows are left out, and counted."""
    sample = Sample()
    sample.add(10, 4, 600, [b"1", b"2"])
    sample.add(5, 0, 300, [b"3", b"4"])
    sample.keep(3)
    assert json.loads(sample.encode()) == {
        "type": "trades",
        "appended": 15,
        "shown": 3,
        "left_out": 12,
        "unread": 4,
        "bytes": 900,
        "data": [2, 3, 4],
    }
    assert json.loads(Sample().encode())["data"] == []
    page = text_of("docs/operators.md")
    [shown] = re.findall(r'^data: (\{"type":"trades".*)$', page, re.MULTILINE)
    assert [*json.loads(shown)] == [*json.loads(sample.encode())]


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
