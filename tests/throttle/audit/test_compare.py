"""A published window against the computed one."""

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
from throttle.contract.snapshot import Row

OLD = make_row(make_entry(make_trade(A, 1), 1))
ROW = make_row(make_entry(make_trade(A, 2, "10.50"), 2))
OTHER = make_row(make_entry(make_trade(B, 1), 3))


def computed(*rows: Row) -> dict[str, ComputedRow]:
    """Return rows as they come out of the log."""
    return {row.isin: ComputedRow(row, 0, ()) for row in rows}


def nothing_before() -> PublishedVersions:
    """Return the knowledge of a stream's beginning."""
    return PublishedVersions({}, ())


def test_a_window_that_is_right_has_no_differences() -> None:
    """Version, number of trades and the very bytes are compared."""
    window = make_snapshot(1, ROW, OTHER)
    assert judge(window, computed(ROW, OTHER), nothing_before()) == ([], 0, 0)


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
    found, *_ = judge(
        make_snapshot(1), computed(ROW), PublishedVersions({A: OLD.version}, ())
    )
    assert found == [Difference("missing", 1, FIRST_MS + W, A, ROW, None)]


def test_a_row_that_was_not_news_is_rightly_not_there() -> None:
    """Stale is not missing."""
    before = PublishedVersions({A: ROW.version}, ())
    assert judge(make_snapshot(1), computed(ROW), before) == ([], 0, 1)


def test_a_row_nobody_computed_is_extra() -> None:
    """A price that did not trade."""
    found, *_ = judge(make_snapshot(1, ROW), {}, nothing_before())
    assert found == [Difference("extra", 1, FIRST_MS + W, A, None, ROW)]


def test_a_stale_row_that_was_published_is_extra() -> None:
    """An issue must never go back."""
    before = PublishedVersions({A: ROW.version}, ())
    found, *_ = judge(make_snapshot(1, OLD), computed(OLD), before)
    assert found == [Difference("extra", 1, FIRST_MS + W, A, None, OLD)]


def test_a_row_that_is_there_twice_is_extra() -> None:
    """However right it is."""
    twice = make_snapshot(1, ROW, ROW)
    found, *_ = judge(twice, computed(ROW), nothing_before())
    assert found == [Difference("extra", 1, FIRST_MS + W, A, None, ROW)]


def test_a_difference_says_what_was_published_and_what_should_have_been() -> None:
    """In one sentence, with trades and content."""
    words = str(Difference("missing", 1, FIRST_MS + W, A, ROW, None))
    assert words.startswith(
        f"window {FIRST_MS + W}, {A}: missing: published is nothing"
    )
    assert "1 trades, {" in words
    assert '"price":10.50' in words


def test_a_row_that_nobody_can_judge_is_undecided() -> None:
    """Whether it was news is not known: it is not called right."""
    before = PublishedVersions({}, [A])
    assert judge(make_snapshot(1), computed(ROW), before) == ([], 1, 0)


def test_an_unknown_issue_is_known_once_it_was_published() -> None:
    """From then on its newest version is certain."""
    before = PublishedVersions({}, [A, C])
    before.learn([ROW])
    assert before.is_news(OLD) is False
    assert before.is_news(ROW._replace(version=ROW.version + b"1")) is True
    assert before.is_news(ROW._replace(isin=C)) is None


def test_learning_something_old_forgets_nothing() -> None:
    """What was published last is what is newest."""
    before = PublishedVersions({A: ROW.version}, ())
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
