"""A published window against the computed one."""

from dataclasses import replace

import pytest

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
    make_snapshot,
    make_trade,
)
from throttle.audit.compare import Difference, PublishedVersions, compare_books, judge
from throttle.audit.recompute import ComputedRow, WindowRule, recompute
from throttle.contract.cut import Cut
from throttle.contract.ledger import Books
from throttle.contract.snapshot import LastValue, Row
from throttle.contract.trade_order import NO_VERSION

OLD = make_row(make_entry(make_trade(A, 1), 1))
ROW = make_row(make_entry(make_trade(A, 2, "10.50"), 2))
OTHER = make_row(make_entry(make_trade(B, 1), 3))
LATE = ROW._replace(sums=b"1,5,50,10,10")
"""The row that restates ROW for the trade of OLD."""


def computed(*rows: Row) -> dict[str, ComputedRow]:
    """Return rows as they come out of the log."""
    return {row.isin: ComputedRow(row, 0, ()) for row in rows}


def shown(row: Row) -> PublishedVersions:
    """Return the knowledge that a row was published last."""
    value = LastValue(row.isin, row.version, 7, row.body)
    return PublishedVersions({row.isin: value})


def nothing_before() -> PublishedVersions:
    """Return the knowledge of a stream's beginning."""
    return PublishedVersions({}, ())


def test_a_window_that_is_right_has_no_differences() -> None:
    """Version, sums and the very bytes are compared."""
    window = make_snapshot(1, ROW, OTHER)
    assert judge(window, computed(ROW, OTHER), nothing_before()) == ([], 0, set())


@pytest.mark.parametrize(
    "changed",
    [
        ROW._replace(sums=b"7"),
        ROW._replace(version=OLD.version),
        ROW._replace(body=ROW.body.replace(b"10.50", b"10.5")),
    ],
)
def test_a_row_with_another_content_is_wrong(changed: Row) -> None:
    """An equal number in other digits is another price."""
    found, undecided, _ = judge(
        make_snapshot(1, changed), computed(ROW), nothing_before()
    )
    assert found == [Difference("wrong", 1, FIRST_MS + W, A, ROW, changed)]
    assert undecided == 0


def test_a_row_that_is_not_there_is_missing() -> None:
    """It was news and nobody was told."""
    found, *_ = judge(make_snapshot(1), computed(ROW), shown(OLD))
    assert found == [Difference("missing", 1, FIRST_MS + W, A, ROW, None)]


@pytest.mark.parametrize("before", [shown(ROW), shown(OTHER)])
def test_trades_that_came_late_are_in_a_row_that_restates(
    before: PublishedVersions,
) -> None:
    """It is the shown trade again, with the sums of the late ones in full."""
    before.learn([ROW])
    assert judge(make_snapshot(1, LATE), computed(OLD), before) == ([], 0, {A})


@pytest.mark.parametrize(
    "sent",
    [
        OLD,
        LATE._replace(sums=b"1,5,50,10,9"),
        LATE._replace(version=OLD.version),
    ],
)
def test_late_trades_do_not_bring_back_what_was_shown_before(sent: Row) -> None:
    """No instrument ever goes back; their sums are theirs, not the shown trade's."""
    found, *_ = judge(make_snapshot(1, sent), computed(OLD), shown(ROW))
    assert found == [Difference("wrong", 1, FIRST_MS + W, A, LATE, sent)]


def test_late_trades_that_nobody_was_told_of_are_missing() -> None:
    """Stale is no reason to leave them out of the sums."""
    found, *_ = judge(make_snapshot(1), computed(OLD), shown(ROW))
    assert found == [Difference("missing", 1, FIRST_MS + W, A, LATE, None)]


NOT_LAST = Row(A, NO_VERSION, b"1,5,50,,", b"")
"""What the log has of A where no trade counts for the last price."""


def test_trades_that_are_not_last_restate_what_is_shown() -> None:
    """With their sums; there is no row where nothing was ever shown."""
    row = ROW._replace(sums=NOT_LAST.sums)
    made = computed(NOT_LAST)
    assert judge(make_snapshot(1, row), made, shown(ROW)) == ([], 0, {A})
    assert judge(make_snapshot(1), made, nothing_before()) == ([], 0, set())
    for sent, before, kind in (
        (None, shown(ROW), "missing"),
        (ROW, shown(ROW), "wrong"),
        (row, nothing_before(), "extra"),
    ):
        window = make_snapshot(1, *([] if sent is None else [sent]))
        [found] = judge(window, made, before).differences
        assert found.kind == kind


def test_whether_trades_that_are_not_last_have_a_row_may_be_unknown() -> None:
    """What was sent is taken for it, and not called right."""
    row = ROW._replace(sums=NOT_LAST.sums)
    for sent, restating in (((), set()), ((row,), {A})):
        before = PublishedVersions({}, [A])
        verdict = judge(make_snapshot(1, *sent), computed(NOT_LAST), before)
        assert verdict == ([], 1, restating)


def test_what_was_shown_already_is_no_news() -> None:
    """Another job had published the trade: its own trade is restated."""
    again = ROW._replace(sums=b"1,5,52.5,10.5,10.5")
    assert judge(make_snapshot(1, again), computed(ROW), shown(ROW)) == ([], 0, {A})
    found, *_ = judge(make_snapshot(1, ROW), computed(ROW), shown(ROW))
    assert found == [Difference("wrong", 1, FIRST_MS + W, A, again, ROW)]


def test_a_row_nobody_computed_or_a_second_one_is_extra() -> None:
    """A price that did not trade; or did, and is there twice."""
    for rows, made in (([ROW], {}), ([ROW, ROW], computed(ROW))):
        found, *_ = judge(make_snapshot(1, *rows), made, nothing_before())
        assert found == [Difference("extra", 1, FIRST_MS + W, A, None, ROW)]


def test_a_difference_says_what_was_published_and_what_should_have_been() -> None:
    """In one sentence, with sums and content."""
    words = str(Difference("missing", 1, FIRST_MS + W, A, ROW, None))
    assert words.startswith(
        f"window {FIRST_MS + W}, {A}: missing: published is nothing"
    )
    assert "1 trades, 1 {" in words
    assert '"price":10.50' in words


def test_what_was_shown_is_not_known_and_its_sums_are_compared() -> None:
    """Whether the right trade is restated nobody knows: it is not called right."""
    before = PublishedVersions({}, [A])
    assert judge(make_snapshot(1, LATE), computed(OLD), before) == ([], 1, {A})
    assert judge(make_snapshot(1, ROW), computed(ROW), before) == ([], 0, set())
    for sent in (OLD, LATE._replace(sums=b"1"), None):
        window = make_snapshot(1, *([] if sent is None else [sent]))
        assert judge(window, computed(ROW if sent is OLD else OLD), before).differences


def test_an_unknown_instrument_is_known_once_it_was_published() -> None:
    """From then on its newest version is certain."""
    before = PublishedVersions({}, [A, C])
    before.learn([ROW])
    assert before.is_news(OLD) is False
    assert before.is_news(ROW._replace(version=ROW.version + b"1")) is True
    assert before.is_news(ROW._replace(isin=C)) is None


def test_learning_something_old_forgets_nothing() -> None:
    """What was published last is what is newest."""
    before = shown(ROW)
    before.learn([OLD])
    assert before.is_news(ROW) is False


ENTRIES = [make_entry(make_trade(A, 1), 1), make_entry(b"?", 2)]


@pytest.mark.parametrize(
    ("books", "problem"),
    [
        (Books(2, 1, 0, 0, {"not_json": 1}), None),
        (Books(3, 2, 0, 0, {"not_json": 1}), "the log holds 2 entries between its"),
        (Books(2, 1, 0, 0, {"bad_isin": 1}), "{'bad_isin': 1} were refused, by the"),
        (Books(2, 0, 1, 0, {"not_json": 1}), "1 were superseded, by the rules 0"),
        (
            Books(2, refused={"not_json": 1}, not_last=1),
            "1 were not for the last price, by the rules 0",
        ),
    ],
)
def test_books_are_compared_with_the_entries(books: Books, problem: str | None) -> None:
    """Read and refused can be counted again."""
    batch = make_batch(make_cut(0, (0,)), make_cut(1, (9,)), [books])
    made = recompute(ENTRIES, FIRST_MS, FIRST_MS + W, WindowRule(W, 5_000))
    problems = compare_books(batch, made, lost=())
    assert len(problems) == (problem is not None)
    if problem is not None:
        assert problems[0].startswith(f"batch 1, partition 0: {problem}")


def test_books_of_some_partitions_are_compared_by_their_numbers() -> None:
    """What is said names the partition of the log."""
    start, end = (Cut(FIRST_MS + n * W, (0, 0), (None, None), (2, 7)) for n in range(2))
    entries = [make_entry(make_trade(A, n), n, partition=7) for n in (1, 2)]
    made = recompute(entries, FIRST_MS, FIRST_MS + W, WindowRule(W, 5_000))
    assert (
        compare_books(make_batch(start, end, [Books(), Books(2, 1, 1)]), made, ()) == []
    )
    [problem] = compare_books(make_batch(start, end, [Books(), Books(3)]), made, ())
    assert problem.startswith("batch 1, partition 7: the log holds 2 entries")


def test_books_of_a_partition_that_was_trimmed_are_not_compared() -> None:
    """What is gone cannot be counted."""
    batch = make_batch(make_cut(0, (0,)), make_cut(1, (9,)), [Books(99)])
    made = recompute(ENTRIES, FIRST_MS, FIRST_MS + W, WindowRule(W, 5_000))
    assert compare_books(batch, made, lost=[0]) == []


def test_what_the_trades_come_to_is_compared_as_well() -> None:
    """In shares and in money, of all partitions; earlier batches do not say it."""
    cuts = make_cut(0, (0,)), make_cut(1, (9,))
    made = recompute(ENTRIES, FIRST_MS, FIRST_MS + W, WindowRule(W, 5_000))
    volume, value = ({"read": number} for number in made.traded["read"])
    assert min(*volume.values(), *value.values()) > 0
    right = Books(2, 1, 0, 0, {"not_json": 1}, volume=volume, value=value)
    assert compare_books(make_batch(*cuts, [right]), made, ()) == []
    batch = make_batch(*cuts, [replace(right, volume={"read": 10**36})])
    [problem] = compare_books(batch, made, ())
    assert problem.startswith("batch 1: trades of volume 1 and value ")
    batch = make_batch(*cuts, [replace(right, volume={**volume, "not_last": 10**36})])
    [problem] = compare_books(batch, made, ())
    assert "of volume 1 and value 0 were not for the last price, by the log" in problem
    assert compare_books(batch, made, lost=[0]) == []
