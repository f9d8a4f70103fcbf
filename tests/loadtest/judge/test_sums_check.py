"""The sums of rows that clients got, compared with what was published."""

import json
from collections.abc import Sequence
from functools import reduce

from loadtest.judge.reference import Change, Changes, Reference
from loadtest.judge.rows import MOST_SAID, RowReader
from loadtest.judge.sums_check import wrong_sums
from tests.loadtest.frames import A, B, make_item
from throttle.contract.row_sums import Amounts, RowSums

# Of each row: offset, seq, and price and size of its trades, the newest one last.
ROWS: Sequence[tuple[int, int, Sequence[tuple[str, str]]]] = (
    (5, 1, (("101", "1"),)),
    (6, 2, (("0.30", "7"), ("104.5", "0.000000000000000001"), ("102", "1"))),
    (7, 2, (("99", "5"),)),
    (9, 3, (("103", "1"),)),
)


def sums_of(*rows: int) -> RowSums:
    trades = [Amounts.of_trade(*trade) for row in rows for trade in ROWS[row][2]]
    return RowSums(len(trades), reduce(Amounts.fold, trades))


CHANGES = [
    Change(offset, 1_000 + seq, seq, "1", *sums_of(n)[:1], amounts=sums_of(n).amounts)
    for n, (offset, seq, _) in enumerate(ROWS)
]
REFERENCE = Reference("k3x9", {5: (10_000, 0.0)}, {A: CHANGES})


def said(seq: int, sums: RowSums | None = None, **more: object) -> bytes:
    """Return a row as a client gets it, of one trade or with these sums."""
    body = json.dumps(make_item(A, seq) | more)
    if sums is None:
        return body.encode()
    trades, *amounts = sums.encode().decode().split(",")
    head = body.replace('"trades": 1', f'"trades": {trades}')[:-1]
    names = ("volume", "value", "high", "low")
    every = zip(names, amounts, strict=True)
    tail = ", ".join(f'"{name}": {amount}' for name, amount in every if amount)
    return f"{head}, {tail}}}".encode()


def wrong(row: bytes, reference: Reference = REFERENCE) -> str:
    """Return what is wrong with a row, no hole before it."""
    return "\n".join(wrong_sums([row], reference, has_holes=False))


def test_rows_that_say_what_was_published_are_not_blamed() -> None:
    """However they were merged, late trades or not; also before the reference begins,
    and behind its end.
    """
    before = sums_of(0, 1, 2, 3).fold(RowSums(1, Amounts.of_trade("7", "7")))
    rows = [
        *(said(seq) for seq in (0, 1, 3, 9)),
        *(said(2, sums_of(*rows)) for rows in ((1,), (2,), (1, 2), (0, 1, 2))),
        *(said(3, sums_of(*rows)) for rows in ((2, 3), (1, 2, 3), (0, 1, 2, 3))),
        *(said(3, sums) for sums in (before, sums_of(3))),
    ]
    assert [wrong(row) for row in rows] == [""] * len(rows)


def test_a_row_that_says_anything_else_is_blamed() -> None:
    """Too few trades, other ones, none of their sums."""
    for row, words in (
        (said(2), "stands for 1,1,102,102,102, published was 3,8."),
        (said(2, sums_of(1)._replace(trades=4)), "published was"),
        (said(3, sums_of(0)), "stands for 1,1,101,101,101, published was 1,1,103,"),
        (said(3, sums_of(2, 2)), "published was 2,6,598,103,99"),
        (said(3, trades=4), "stands for 4, published was 5,"),
        (said(3, volume=1), "not as the protocol says, KeyError('value')"),
        (said(3, volume=None), "not as the protocol says"),
    ):
        assert words in wrong(row)


def test_a_price_may_be_of_a_row_that_is_held_back() -> None:
    """Of another part of the same window: the sums are of the rows before it."""
    row = said(2, sums_of(0))
    apart = {5: (10_000, 0.0), 6: (12_000, 0.0)}
    one_window = {5: (10_000, 0.0), 6: (10_000, 0.0)}
    for windows, is_blamed in ((apart, True), (one_window, False)):
        reference = Reference("k3x9", windows, {A: CHANGES})
        assert bool(wrong(row, reference)) is is_blamed


def test_after_a_hole_sums_may_be_missing() -> None:
    rows = [said(3, trades=4), said(2), said(3, sums_of(0))]
    assert len(list(wrong_sums(rows, REFERENCE, has_holes=True))) == 1


def test_what_nobody_knows_is_not_compared() -> None:
    changes = [change._replace(amounts=None) for change in CHANGES]
    reference = Reference("k3x9", {}, {A: changes})
    assert list(wrong_sums([said(2), said(9)], reference, has_holes=False)) == []


def test_a_range_of_no_trades_is_compared() -> None:
    """No trade of the first row counts for it; the second row has one."""
    none = RowSums(2, Amounts(0, 0, None, None))
    rows = none, sums_of(0)
    changes = [
        change._replace(trades=sums.trades, amounts=sums.amounts)
        for change, sums in zip(CHANGES, rows, strict=False)
    ]
    reference = Reference("k3x9", {}, {A: changes})
    right = said(1, none), said(2, sums_of(0).fold(none))
    assert list(wrong_sums(right, reference, has_holes=False)) == []
    assert len(list(wrong_sums([said(1)], reference, has_holes=False))) == 1


def test_late_trades_are_no_news() -> None:
    changes = Changes(CHANGES)
    assert [changes.after_late(place) for place in range(5)] == [0, 1, 3, 3, 4]


def test_rows_that_stand_for_trades_are_kept_to_be_judged() -> None:
    reader = RowReader()
    for epoch, trades in (("a", 1), ("a", 0), ("b", 3)):
        frame = {"type": "update", "epoch": epoch, "offset": 1, "window": 2}
        items = [make_item(A, 1, trades), make_item(B, 2, trades)]
        payload = json.dumps({**frame, "data": items}, separators=(",", ":"))
        reader.read(payload.encode())
        reader.read(payload.encode() + b" ")
    assert {epoch: len(rows) for epoch, rows in reader.said.items()} == {"a": 2, "b": 2}
    assert json.loads(reader.said["b"][0])["trades"] == 3
    for number in range(3 * MOST_SAID):
        reader._keep("c", b"%d" % number)
    kept = [int(row) for row in reader.said["c"]]
    assert len(kept) <= MOST_SAID
    assert kept[-1] > 2.9 * MOST_SAID
    assert kept[0] < 10
