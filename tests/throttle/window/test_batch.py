"""From the rows of a batch to the windows and counts that are published."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import InvalidTrade, Trade, check_not_ahead
from ingest.tradelog.contract import Chunk
from tests.throttle.conflated import as_conflated, rows_between
from tests.throttle.payloads import (
    ISINS,
    MAX_AHEAD_MS,
    NOW_MS,
    make_chunk,
    payloads,
    plain_trades,
)
from throttle.contract.cut import Cut
from throttle.contract.dead_letter import DeadLetter
from throttle.contract.row_sums import ONE, Amounts, RowSums
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import NO_VERSION, encode_version
from throttle.window.batch import Abandoned, PartitionCount, assemble
from throttle.window.checked_rows import trade_rows
from throttle.window.control_rows import abandoned_row, cut_row, read_row
from tickthrottle_client.updates_v1 import ALL

W = 2_000
A, B = ISINS[:2]
FIRST = 1 << 61


def payload(isin: str, time_us: int, price: str = "10", seq: int = 1) -> bytes:
    """Make the payload of a trade, its time counted from the batch's start."""
    return Trade(isin, NOW_MS * 1000 + time_us, seq, price, "1").to_wire()


def table_of(*partitions: list[tuple[int, bytes]], windows: int = 1) -> pa.Table:
    """Make the rows of a batch; append times count from its start."""
    chunks = [make_chunk([(NOW_MS + ms, p) for ms, p in one]) for one in partitions]
    return rows_between(*cuts(len(chunks), windows), chunks, MAX_AHEAD_MS)


def cuts(partitions: int, windows: int) -> tuple[Cut, Cut]:
    """Make the two cuts of a batch."""
    zeros = (0,) * partitions
    end_ms = NOW_MS + windows * W
    return Cut(NOW_MS, zeros, zeros), Cut(end_ms, (1 << 62,) * partitions, zeros)


def row_of(payload: bytes, position: int, sums: bytes = ONE) -> Row:
    """Return the row of a trade at a position."""
    trade = Trade.from_wire(payload)
    version = encode_version(trade.time_us, trade.seq, position)
    return Row(trade.isin, version, sums, trade.to_row())


def test_a_batch_of_some_partitions_counts_those() -> None:
    """By their numbers, in the order of the cut."""
    named = (3, 11)
    start = Cut(NOW_MS, (5, 5), (0, 0), named)
    end = Cut(NOW_MS + W, (1 << 62,) * 2, (0, 0), named)
    chunks = {
        3: make_chunk([(NOW_MS + 1, payload(A, 1)), (NOW_MS + 2, payload(A, 2))]),
        11: make_chunk([(NOW_MS + 1, payload(A, 3)), (NOW_MS + 2, b"x")]),
    }
    tables = [cut_row(start, end)]
    for p in (11, 3):
        span = start.end_ms, end.end_ms
        tables.append(trade_rows(chunks[p], p, *span, MAX_AHEAD_MS))
        tables.append(read_row(p, 2, p * 10, end))
    batch = assemble(as_conflated(pa.concat_tables(tables), W), W)
    assert (batch.start, batch.end) == (start, end)
    assert batch.counts == [
        PartitionCount(read=2, blanks=30, superseded=2),
        PartitionCount(read=2, blanks=110, refused=Counter(not_json=1)),
    ]
    [window] = batch.windows
    assert window.rows == {A: (11, row_of(payload(A, 3), FIRST, b"3,3,30,10,10"))}
    [letter] = batch.dead_letters
    assert (letter.partition, letter.position) == (11, FIRST + 1)


def test_a_batch_has_the_partitions_of_its_end() -> None:
    """One that was added to the log since the last cut is in it."""
    start, end = Cut(NOW_MS, (5,), (6,)), Cut(NOW_MS + W, (5, 9), (6, 10))
    tables = [cut_row(start, end), read_row(0, 0, 0, end)]
    tables.append(read_row(1, 10, 0, end))
    batch = assemble(as_conflated(pa.concat_tables(tables), W), W)
    assert batch.counts == [PartitionCount(), PartitionCount(read=10)]


def test_what_several_tasks_read_of_a_partition_adds_up() -> None:
    """A count may come in parts."""
    table = table_of([(1, b"x")])
    again = table.filter(pa.compute.equal(table["key"], "!read"))
    batch = assemble(as_conflated(pa.concat_tables([table, again]), W), W)
    assert batch.counts[0].read == 2


@pytest.mark.parametrize(
    ("times", "why"), [(0, "this one has none"), (2, "do not fit together")]
)
def test_a_batch_has_one_cut(times: int, why: str) -> None:
    """Guessing the windows of a batch is worse than stopping."""
    conflated = as_conflated(table_of([(1, payload(A, 1))]), W)
    is_cut = pa.compute.equal(conflated["key"], "!cut")
    others = conflated.filter(pa.compute.invert(is_cut))
    table = pa.concat_tables([others, *[conflated.filter(is_cut)] * times])
    with pytest.raises(ValueError, match=why):
        assemble(table, W)


def test_a_batch_that_one_of_its_tasks_gave_up_is_not_published() -> None:
    """What the others have read is not the whole of it."""
    table = table_of([(1, payload(A, 1))])
    given_up = abandoned_row(NOW_MS + W)
    with pytest.raises(Abandoned):
        assemble(as_conflated(pa.concat_tables([table, given_up]), W), W)


def test_each_task_brings_the_cut_of_its_partitions() -> None:
    """Together they are the batch's, and the slowest says when all was read.

    So are the servers that they have read, of which Kafka names none.
    """
    start, end = Cut(NOW_MS, (5, 6), (5, 6)), Cut(NOW_MS + W, (7, 9), (7, None))
    parts = [
        Cut(end.end_ms, (position,), (count,), (p,))
        for p, (position, count) in enumerate(zip((7, 9), (7, None), strict=True))
    ]
    read_ms = (end.end_ms + 4, end.end_ms + 3)
    for servers in [({"a1"}, {"b2", "a1"}), ({"a1"}, {"a1"}), ((), ())]:
        said = zip(parts, read_ms, servers, strict=True)
        tables = [cut_row(start, *of_task) for of_task in said]
        batch = assemble(as_conflated(pa.concat_tables(tables), W), W)
        assert (batch.start, batch.end) == (start, end)
        assert batch.read_ms == end.end_ms + 4
        assert batch.servers == {*servers[0], *servers[1]}


entries = st.lists(
    st.tuples(st.integers(-W, 3 * W - 1), plain_trades.map(Trade.to_wire) | payloads),
    max_size=8,
)


def judge(chunk: Chunk, at: int) -> Trade | InvalidTrade:
    """Return what the rules say of one entry."""
    try:
        trade = Trade.from_wire(chunk.payloads[at].as_py())
        append_us = chunk.append_ms[at].as_py() * 1000
        cuts_us = NOW_MS * 1000, (NOW_MS + 3 * W) * 1000
        check_not_ahead(trade, append_us, MAX_AHEAD_MS * 1000, cuts_us)
    except InvalidTrade as error:
        return error
    return trade


@given(st.lists(entries, min_size=1, max_size=3), st.booleans(), st.randoms())
def test_any_batch_equals_plain_python(
    partitions: list[list[tuple[int, bytes]]], is_live: bool, shuffler: Any
) -> None:
    """Rows, counts and letters are those a loop over the entries gives.

    Also where an instrument has several rows of a window in a partition.
    """
    table = table_of(*partitions, windows=3)
    conflated = as_conflated(table, W, is_live)
    order = list(range(conflated.num_rows))
    shuffler.shuffle(order)
    batch = assemble(conflated.take(order), W)

    newest: dict[tuple[int, str], tuple[Any, ...]] = {}
    sums: dict[tuple[int, str], RowSums] = {}
    together: dict[str, RowSums] = {}
    in_part: set[str] = set()
    letters, counts = [], [PartitionCount() for _ in partitions]
    for p, raw in enumerate(partitions):
        chunk = make_chunk([(NOW_MS + ms, payload) for ms, payload in raw])
        counts[p].read = len(chunk)
        for at, (ms, body) in enumerate(raw):
            judged, position = judge(chunk, at), FIRST + at
            if isinstance(judged, InvalidTrade):
                counts[p].refused[judged.reason] += 1
                place = p, position, NOW_MS + ms
                letters.append(DeadLetter(*place, judged.reason, str(judged), body))
                continue
            window = max(ms, 0) // W
            group, updates = (window, judged.isin), judged.updates
            one = RowSums(1, Amounts.of_trade(judged.price, judged.size, updates))
            sums[group] = sums[group].fold(one) if group in sums else one
            before = together.get(judged.isin)
            together[judged.isin] = one if before is None else before.fold(one)
            if updates != ALL:
                in_part.add(judged.isin)
            value = (*judged.version, position, p, judged.to_row())
            if updates.last:
                counts[p].superseded += 1
            else:
                counts[p].not_last += 1
                value = (-1, -1, -1, p, b"")
            newest[group] = max(newest.get(group, value), value)
    for time_us, *_, p, _ in newest.values():
        counts[p].superseded -= time_us >= 0
    found = {
        (number, isin): (row.version, p, row.row_sums, row.body)
        for number, window in enumerate(batch.windows)
        for isin, (p, row) in window.rows.items()
    }
    assert found == {
        group: (
            NO_VERSION if time_us < 0 else encode_version(time_us, seq, position),
            p,
            sums[group],
            body,
        )
        for group, (time_us, seq, position, p, body) in newest.items()
    }
    assert batch.sums == {
        isin: of_it.encode()
        for isin, of_it in together.items()
        if of_it.trades > 1 or isin in in_part
    }
    assert batch.counts == counts
    assert batch.dead_letters == letters
