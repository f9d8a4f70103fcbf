"""The rule a second time: which trade stands for an instrument in a window."""

from collections import Counter
from fractions import Fraction
from typing import Any

from hypothesis import example, given, settings

from ingest.trade import InvalidTrade, Trade
from tests.examples import many
from tests.throttle.past import (
    FIRST_MS,
    A,
    B,
    C,
    W,
    make_batch,
    make_cut,
    make_entry,
    make_row,
    make_trade,
)
from tests.throttle.payloads import NOW_MS, payloads
from throttle.audit.recompute import (
    Entry,
    RecomputedBatch,
    WindowRule,
    holder,
    recompute,
)
from throttle.contract.group import units
from throttle.contract.ledger import Books
from throttle.contract.snapshot import Row
from throttle.contract.trade_order import NO_VERSION, encode_version

RULE = WindowRule(W, max_ahead_ms=5_000)
ONE_WINDOW = FIRST_MS, FIRST_MS + W


def rows_of(batch: RecomputedBatch) -> dict[int, dict[str, Row]]:
    """Return the rows of every window."""
    return {
        end: {isin: computed.row for isin, computed in rows.items()}
        for end, rows in batch.windows.items()
    }


def folded(entry: Entry, sums: bytes) -> Row:
    """Make the row that an entry is published as, standing for other trades, too."""
    return make_row(entry)._replace(sums=sums)


def test_an_instrument_is_its_newest_trade_and_the_sums_of_all() -> None:
    """The greatest time and number win, whatever the order of arrival."""
    old = make_entry(make_trade(A, 1), 10)
    new = make_entry(make_trade(A, 3, "11.50"), 20)
    late = make_entry(make_trade(A, 2), 30)
    made = recompute([old, new, late], *ONE_WINDOW, RULE)
    assert rows_of(made) == {FIRST_MS + W: {A: folded(new, b"3,15,157.5,11.5,10")}}
    assert made.read == Counter({0: 3})


def test_time_goes_before_number_and_the_position_breaks_ties() -> None:
    """Feeds that number nothing have an order, too."""
    entries = [
        make_entry(make_trade(A, 9), 1),
        make_entry(make_trade(A, 1, after_us=5), 2),
        make_entry(make_trade(A, 1, "12", after_us=5), 3),
    ]
    made = recompute(entries, *ONE_WINDOW, RULE)
    assert rows_of(made)[FIRST_MS + W][A] == folded(entries[2], b"3,15,160,12,10")


def test_sums_have_every_digit() -> None:
    """Of numbers as long as a trade may have, and in any form of an entry."""
    long, tiny = "999999999999999999.000000000000000001", "0.000000000000000001"
    time_us = FIRST_MS * 1_000
    trades = [Trade(A, time_us, n, long, size) for n, size in enumerate((long, tiny))]
    spaced = trades[1].to_wire().replace(b",", b" , ")
    entries = [make_entry(one, 1, n) for n, one in enumerate((trades[0], spaced))]
    made = recompute(entries, *ONE_WINDOW, RULE)
    value = Fraction(long) * (Fraction(long) + Fraction(tiny))
    row = rows_of(made)[FIRST_MS + W][A]
    trade_count, volume, worth, *prices = row.sums.decode().split(",")
    assert (trade_count, volume) == ("2", "999999999999999999.000000000000000002")
    assert (Fraction(worth), prices) == (value, [long, long])


def test_a_window_ends_before_its_end() -> None:
    """An entry at the boundary belongs to the next window."""
    inside = make_entry(make_trade(A, 1), W - 1)
    at_end = make_entry(make_trade(A, 2), W)
    made = recompute([inside, at_end], FIRST_MS, FIRST_MS + 2 * W, RULE)
    assert rows_of(made) == {
        FIRST_MS + W: {A: make_row(inside)},
        FIRST_MS + 2 * W: {A: make_row(at_end)},
    }


def test_a_straggler_counts_for_the_first_window_of_its_batch() -> None:
    """Stamped before the cut it appeared behind, it is in exactly one window."""
    straggler = make_entry(make_trade(A, 1), -700)
    made = recompute([straggler], FIRST_MS, FIRST_MS + 2 * W, RULE)
    assert list(made.windows) == [FIRST_MS + W]


def test_an_entry_stamped_past_the_end_is_in_the_last_window() -> None:
    """Its writer's stamp does not move it out of the batch that read it."""
    end_ms = FIRST_MS + 2 * W
    ahead = [make_entry(make_trade(A, n), 2 * W + n * W * 99) for n in range(2)]
    made = recompute(ahead, FIRST_MS, end_ms, RULE)
    assert rows_of(made) == {end_ms: {A: folded(ahead[1], b"2,10,100,10,10")}}
    assert [RULE.window_of(e.append_ms, FIRST_MS, end_ms) for e in ahead] == [
        end_ms,
        end_ms,
    ]


def test_a_time_is_judged_by_a_stamp_inside_the_batch() -> None:
    """A writer cannot let a trade from the future in by stamping its entry so."""
    end_ms = FIRST_MS + W
    ahead_us = (W - 1 + 5_000) * 1_000
    for after_us, reasons in ((0, {}), (1, {0: {"future_time": 1}})):
        trade = make_trade(A, 1, after_us=ahead_us + after_us)
        entry = make_entry(trade, 10**9)
        assert recompute([entry], FIRST_MS, end_ms, RULE).refused == reasons
        # Before there is a cut, the stamp is all that is known.
        assert RULE.judge(entry) == [trade]


def test_an_old_stamp_is_told_as_such() -> None:
    """The trade is not from the future; the same is said by the job and the audit."""
    trade = make_trade(A, 1)
    for old_ms, reason in ((3_600_000, "old_stamp"), (5_000, None)):
        entry = make_entry(trade, -old_ms)
        batch = recompute([entry], FIRST_MS, FIRST_MS + W, RULE)
        assert batch.refused == ({} if reason is None else {0: {reason: 1}})
    [refused] = RULE.judge(make_entry(trade, -3_600_000), (FIRST_MS, FIRST_MS + W))
    assert "whoever stamped it, with CreateTime the producer" in str(refused)
    # What is ahead of the second cut as well is from the future, whatever the stamp.
    early = make_entry(make_trade(A, 1, after_us=60_000_000), -3_600_000)
    assert recompute([early], FIRST_MS, FIRST_MS + W, RULE).refused == {
        0: {"future_time": 1}
    }


@settings(max_examples=many(400))
@given(payloads)
@example(make_trade(A, 1).to_wire().replace(b"}", b',"trades":1}'))
@example(make_trade(A, 1).to_wire().replace(b"}", b',"price":"2"}'))
@example(make_trade(A, 1).to_wire().replace(b"}", b',"pad":"%s"}' % (b"x" * 16_384)))
@example(make_trade(A, 1).to_wire()[:-1] + b',"times":0,"side":"B"}')
@example(make_trade(A, 1).to_wire() + b"\n")
def test_what_is_read_of_an_entry_is_what_the_rules_say(payload: bytes) -> None:
    """A pattern recognises most trades; it never gives another answer."""
    entry = make_entry(payload, NOW_MS - FIRST_MS)
    cuts_ms = NOW_MS - W, NOW_MS
    [trade] = RULE.judge(entry, cuts_ms)
    found = RULE.read(entry, cuts_ms)
    if isinstance(trade, InvalidTrade):
        [refused] = found
        assert isinstance(refused, InvalidTrade)
        assert (refused.reason, str(refused)) == (trade.reason, str(trade))
    else:
        assert isinstance(trade, Trade)
        assert found in ((trade.isin, *trade.version), [trade])


def by_line(payload: bytes) -> dict[str, str]:
    """Decode a line: a decoder as a user writes one."""
    fields = ("isin", "time", "seq", "price", "size")
    return dict(zip(fields, payload.decode().split(), strict=True))


def test_entries_of_another_form_are_judged_through_the_decoder() -> None:
    """As the job did it: what it refused is refused again, for the same reason."""
    rule = WindowRule(W, 5_000, by_line)
    line = f"{A} {FIRST_MS * 1_000} 1 10 5".encode()
    wire = make_trade(A, 1).to_wire()
    entries = [make_entry(payload, n) for n, payload in enumerate((line, wire, b""))]
    made = recompute(entries, *ONE_WINDOW, rule)
    assert made.refused == {0: {"not_decoded": 1, "empty": 1}}
    [row] = rows_of(made)[FIRST_MS + W].values()
    assert row.body == Trade(A, FIRST_MS * 1_000, 1, "10", "5").to_row()


def by_frame(payload: bytes) -> Any:
    """Decode a frame of several lines, or one that is no trade."""
    return "book" if payload == b"book" else map(by_line, payload.splitlines())


def test_an_entry_holds_several_trades_or_none() -> None:
    """Of equal trades in one entry the last is the newest, and all are counted."""
    rule = WindowRule(W, 5_000, by_frame)
    time_us = FIRST_MS * 1_000
    of_a = [f"{A} {time_us} {rest}" for rest in ("1 10 5", "1 11 5", "0 12 5")]
    of_b = [f"{B} {time_us} {rest}" for rest in ("1 7 5", "1 -7 5")]
    frame = "\n".join(of_a + of_b)
    entries = [make_entry(p, n) for n, p in enumerate((frame.encode(), b"book"))]

    made = recompute(entries, *ONE_WINDOW, rule)

    rows = rows_of(made)[FIRST_MS + W]
    assert rows[A].body == Trade(A, time_us, 1, "11", "5").to_row()
    assert (rows[A].sums, rows[B].sums) == (b"3,15,165,12,10", b"1")
    books = made.books()
    assert (books.read, books.extra, books.superseded) == (2, 4, 2)
    assert books.refused == {"bad_price": 1}
    assert books.skipped == {"book": 1}
    assert books.unaccounted == len(rows)


def test_a_refused_trade_is_counted_by_partition_and_reason() -> None:
    """It is in no window."""
    entries = [
        make_entry(b"?", 1, partition=1),
        make_entry(b"?", 2, partition=1),
        make_entry(make_trade(A, 1, after_us=9_000_000), 3),
    ]
    made = recompute(entries, *ONE_WINDOW, RULE)
    assert made.windows == {}
    assert made.read == Counter({1: 2, 0: 1})
    assert made.refused == {1: {"not_json": 2}, 0: {"future_time": 1}}


def test_what_is_no_rows_newest_is_superseded_in_its_own_partition() -> None:
    """Of an instrument in two partitions, too; of two equal places the greater wins."""
    entries = [make_entry(make_trade(A, 1), 1, partition=p) for p in (0, 1, 0)]
    made = recompute(entries, *ONE_WINDOW, RULE)
    [row] = made.windows[FIRST_MS + W].values()
    assert (row.partition, row.row.sums) == (1, b"3,15,150,10,10")
    assert (made.superseded[0], made.superseded[1]) == (2, 0)
    assert made.books() == Books(3, 0, 2)


def test_a_trade_is_what_it_counts_for() -> None:
    """Never the latest without ``last``; alone it makes a row that shows none."""
    made = recompute(
        [
            make_entry(make_trade(A, 1, "10"), 1),
            make_entry(make_trade(A, 2, "12", updates="range,last"), 2),
            make_entry(make_trade(A, 3, "99", updates="volume"), 3),
            make_entry(make_trade(A, 4, "9", updates="range"), 4),
            make_entry(make_trade(B, 1, "8", updates="last,volume"), 5, partition=1),
            make_entry(make_trade(C, 1, "7", updates="none"), 6, partition=1),
        ],
        *ONE_WINDOW,
        RULE,
    )
    rows = rows_of(made)[FIRST_MS + W]
    assert rows[A].sums == b"4,10,545,12,9"
    assert b'"price":12,' in rows[A].body
    assert rows[B].sums == b"1,5,40,,"
    assert rows[C] == Row(C, NO_VERSION, b"1,0,0,,", b"")
    assert made.windows[FIRST_MS + W][C].first_news_ms(None) is None
    assert made.not_last == {0: 2, 1: 1}
    assert made.superseded == {0: 1, 1: 0}
    assert made.traded["not_last"] == (units("5"), units("495"))
    assert made.traded["read"] == (units("15"), units("585"))


def test_a_row_knows_when_its_first_news_was_appended() -> None:
    """Of whatever was published before; partitions come one after the other."""
    entries = [
        make_entry(make_trade(A, 3), 30, partition=0),
        make_entry(make_trade(A, 2), 40, partition=0),
        make_entry(make_trade(A, 5), 50, partition=0),
        make_entry(make_trade(A, 1), 10, partition=1),
        make_entry(make_trade(A, 4), 20, partition=1),
    ]
    row = recompute(entries, *ONE_WINDOW, RULE).windows[FIRST_MS + W][A]
    for seq, after_ms in ((0, 10), (1, 20), (3, 20), (4, 50)):
        before = encode_version(FIRST_MS * 1_000, seq, 2**62)
        assert row.first_news_ms(before) == FIRST_MS + after_ms
    assert row.first_news_ms(None) == FIRST_MS + 10
    assert row.first_news_ms(encode_version(FIRST_MS * 1_000, 5, 2**62)) is None


def test_an_entry_is_held_by_the_batch_whose_cuts_it_lies_between() -> None:
    """The end is inside, the start is not; another partition is another matter."""
    first = make_batch(make_cut(0, (0,)), make_cut(1, (10,)), [Books()])
    second = make_batch(make_cut(1, (10,)), make_cut(3, (30,)), [Books()])
    batches = [first, second]
    assert holder(batches, 0, 10) == first
    assert holder(batches, 0, 11) == second
    assert holder(batches, 0, 31) is None
    assert holder(batches, 1, 10) is None
    # The first entry of an added partition, whose position is 0.
    added = make_batch(second.end, make_cut(4, (31, 3)), [Books(), Books()])
    assert holder([*batches, added], 1, 0) == added
