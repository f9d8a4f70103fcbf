"""Rows that wait to be sent as one, and what they say together."""

from gateway.stream.pending_rows import AT_ONCE, PendingRow, PendingRows, SharedRows
from tests.gateway.samples import HYNIX, SAMSUNG, make_isins, make_row
from throttle.contract.row_sums import ONE
from throttle.contract.snapshot import Row

GROUP = "group:market:KOSPI"
BOTH = b"2,80,15964000,199600,199500"


def shared(*rows: Row) -> SharedRows:
    """Return the rows of an update."""
    return SharedRows({row.isin: row for row in rows})


def text_of(pending: PendingRow | None, row: Row) -> bytes | None:
    """Return what an item with a row's body says."""
    return None if pending is None else pending.text(row.body)


def test_a_row_that_waits_alone_says_what_it_said() -> None:
    """But in full beside the body of a newer one, which was not among its trades."""
    row, newer = make_row(), make_row(price="199600", seq=2)
    waiting = PendingRows()
    waiting.add(shared(row), [SAMSUNG])
    alone = waiting.by_name[SAMSUNG]
    assert text_of(alone, row) == ONE
    assert text_of(alone, newer) == b"1,40,7980000,199500,199500"


def test_several_rows_are_folded() -> None:
    """Of a group, only that it waits is known."""
    first, second = make_row(), make_row(price="199600", seq=2)
    waiting = PendingRows()
    waiting.add(shared(first), [SAMSUNG])
    waiting.add(shared(second, make_row(HYNIX)), [SAMSUNG, HYNIX, GROUP])
    assert not waiting.is_folded
    assert waiting.fold_some()
    rows = waiting.take()
    assert text_of(rows[SAMSUNG], second) == BOTH
    assert text_of(rows[HYNIX], make_row(HYNIX)) == ONE
    assert rows[GROUP] is None
    assert not waiting.by_name


def test_clients_that_fell_behind_together_share_every_fold() -> None:
    """Whoever began to wait later has another one."""
    updates = [shared(make_row(seq=seq)) for seq in (1, 2, 3)]
    one, other, later = PendingRows(), PendingRows(), PendingRows()
    for update in updates:
        one.add(update, [SAMSUNG])
        other.add(update, [SAMSUNG])
    later.add(updates[1], [SAMSUNG])
    later.add(updates[2], [SAMSUNG])
    assert one.by_name[SAMSUNG] is other.by_name[SAMSUNG]
    counts = [
        row.fold().trades
        for waiting in (one, later)
        if (row := waiting.by_name[SAMSUNG]) is not None
    ]
    assert counts == [3, 2]
    # What one of them has folded is nothing to do for the others.
    again = PendingRows()
    again.by_name = {SAMSUNG: updates[1].get(SAMSUNG, updates[0].get(SAMSUNG, None))}
    again.add(updates[2], [SAMSUNG])
    assert again.by_name[SAMSUNG] is one.by_name[SAMSUNG]


def test_much_is_folded_in_steps() -> None:
    """So that nothing else waits for it; the next update finishes what is not done."""
    isins = make_isins(2 * AT_ONCE + 1)
    waiting = PendingRows()
    for seq in (1, 2):
        waiting.add(shared(*(make_row(isin, seq=seq) for isin in isins)), isins)
    assert [waiting.fold_some() for _ in range(3)] == [False, False, True]
    for seq in range(3, 2_000):
        waiting.add(shared(make_row(isins[0], seq=seq)), isins[:1])
    row = waiting.by_name[isins[0]]
    assert row is not None
    assert row.fold().trades == 1_999
