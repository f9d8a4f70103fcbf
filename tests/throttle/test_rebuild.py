"""The rule a second time: which trade stands for an issue in a window."""

from collections import Counter

from ingest.trade import Trade
from tests.throttle.past import (
    FIRST_MS,
    A,
    B,
    W,
    make_batch,
    make_cut,
    make_entry,
    make_row,
    make_trade,
)
from throttle.ledger import Books
from throttle.rebuild import Entry, Rule, holder, rebuild

RULE = Rule(W, max_ahead_ms=5_000)
ONE_WINDOW = FIRST_MS, FIRST_MS + W


def test_an_issue_is_its_newest_trade_and_their_number() -> None:
    """The greatest time and number win, whatever the order of arrival."""
    old = make_entry(make_trade(A, 1), 10)
    new = make_entry(make_trade(A, 3, "11.50"), 20)
    late = make_entry(make_trade(A, 2), 30)
    made = rebuild([old, new, late], *ONE_WINDOW, RULE)
    assert made.windows == {FIRST_MS + W: {A: make_row(new, 3)}}
    assert made.read == Counter({0: 3})


def test_time_goes_before_number_and_the_position_breaks_ties() -> None:
    """Feeds that number nothing have an order, too."""
    entries = [
        make_entry(make_trade(A, 9), 1),
        make_entry(make_trade(A, 1, after_us=5), 2),
        make_entry(make_trade(A, 1, "12", after_us=5), 3),
    ]
    made = rebuild(entries, *ONE_WINDOW, RULE)
    assert made.windows[FIRST_MS + W][A] == make_row(entries[2], 3)


def test_a_window_ends_before_its_end() -> None:
    """An entry at the boundary belongs to the next window."""
    inside = make_entry(make_trade(A, 1), W - 1)
    at_end = make_entry(make_trade(A, 2), W)
    made = rebuild([inside, at_end], FIRST_MS, FIRST_MS + 2 * W, RULE)
    assert made.windows == {
        FIRST_MS + W: {A: make_row(inside)},
        FIRST_MS + 2 * W: {A: make_row(at_end)},
    }


def test_a_straggler_counts_for_the_first_window_of_its_batch() -> None:
    """Stamped before the cut it appeared behind, it is in exactly one window."""
    straggler = make_entry(make_trade(A, 1), -700)
    made = rebuild([straggler], FIRST_MS, FIRST_MS + 2 * W, RULE)
    assert list(made.windows) == [FIRST_MS + W]


def test_an_entry_stamped_past_the_end_is_in_the_last_window() -> None:
    """Its writer's stamp does not move it out of the batch that read it."""
    end_ms = FIRST_MS + 2 * W
    ahead = [make_entry(make_trade(A, n), 2 * W + n * W * 99) for n in range(2)]
    made = rebuild(ahead, FIRST_MS, end_ms, RULE)
    assert made.windows == {end_ms: {A: make_row(ahead[1], 2)}}
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
        assert rebuild([entry], FIRST_MS, end_ms, RULE).refused == reasons
        # Before there is a cut, the stamp is all that is known.
        assert RULE.judge(entry) == trade


def by_line(payload: bytes) -> dict[str, str]:
    """Decode a line: a decoder as a user writes one."""
    fields = ("isin", "time", "seq", "price", "size")
    return dict(zip(fields, payload.decode().split(), strict=True))


def test_entries_of_another_form_are_judged_through_the_decoder() -> None:
    """As the job did it: what it refused is refused again, for the same reason."""
    rule = Rule(W, 5_000, by_line)
    line = f"{A} {FIRST_MS * 1_000} 1 10 5".encode()
    wire = make_trade(A, 1).to_wire()
    entries = [make_entry(payload, n) for n, payload in enumerate((line, wire, b""))]
    made = rebuild(entries, *ONE_WINDOW, rule)
    assert made.refused == {0: {"not_decoded": 1, "empty": 1}}
    [row] = made.windows[FIRST_MS + W].values()
    assert row.body == Trade(A, FIRST_MS * 1_000, 1, "10", "5").to_row()


def test_a_refused_trade_is_counted_by_partition_and_reason() -> None:
    """It is in no window."""
    entries = [
        make_entry(b"?", 1, partition=1),
        make_entry(b"?", 2, partition=1),
        make_entry(make_trade(A, 1, after_us=9_000_000), 3),
    ]
    made = rebuild(entries, *ONE_WINDOW, RULE)
    assert made.windows == {}
    assert made.read == Counter({1: 2, 0: 1})
    assert made.refused == {1: {"not_json": 2}, 0: {"future_time": 1}}


def test_an_issue_in_two_partitions_is_one_row() -> None:
    """Nobody should append so, but one issue is one row with all of its trades."""
    here = make_entry(make_trade(A, 1), 1, partition=0)
    there = make_entry(make_trade(A, 2), 1, partition=1)
    same = make_entry(make_trade(B, 1), 1, partition=0)
    made = rebuild([here, there, same], *ONE_WINDOW, RULE)
    rows = made.windows[FIRST_MS + W]
    assert rows == {A: make_row(there, 2), B: make_row(same)}


def test_nothing_read_is_nothing_made() -> None:
    """A quiet batch has no rows."""
    made = rebuild([], *ONE_WINDOW, RULE)
    assert (made.windows, made.read, made.refused) == ({}, {}, {})


def test_an_entry_is_held_by_the_batch_whose_cuts_it_lies_between() -> None:
    """The end is inside, the start is not; another partition is another matter."""
    first = make_batch(make_cut(0, (0,)), make_cut(1, (10,)), [Books()])
    second = make_batch(make_cut(1, (10,)), make_cut(3, (30,)), [Books()])
    batches = [first, second]
    assert holder(batches, 0, 10) == first
    assert holder(batches, 0, 11) == second
    assert holder(batches, 0, 31) is None
    assert holder(batches, 1, 10) is None


def test_an_entry_of_an_added_partition_is_held_by_the_batch_that_added_it() -> None:
    """Its position is 0; the batches before know nothing of the partition."""
    first = make_batch(make_cut(0, (0,)), make_cut(1, (10,)), [Books()])
    second = make_batch(first.end, make_cut(2, (12, 3)), [Books(), Books()])
    assert holder([first, second], 1, 0) == second
    assert holder([first], 1, 0) is None


def test_entries_compare_by_what_they_are() -> None:
    """A log entry is plain data."""
    assert make_entry(b"x", 1) == Entry(0, (FIRST_MS + 1) << 21, FIRST_MS + 1, b"x")
