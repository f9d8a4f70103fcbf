"""The end of a run in a terminal."""

from dataclasses import replace
from io import StringIO

from rich.console import Console

from loadtest.report.terminal import per_item, per_row, summary
from loadtest.results import Result
from tests.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_comparison_result,
    make_outcome,
    make_result,
)


def printed(result: Result, width: int = 140) -> str:
    console = Console(file=StringIO(), width=width)
    console.print(summary(result))
    file = console.file
    assert isinstance(file, StringIO)
    return file.getvalue()


def test_the_answer_comes_first() -> None:
    """Then thresholds, distributions, kinds, the ledger and the reduction."""
    text = printed(make_result(40, 20))
    parts = ["It held", "faults>0", "staleness ", "Kind", "Ledger: "]
    parts += ["Audit: ", "Reduction: "]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)
    assert "refused: balanced" in text


def test_reduction_is_of_trades_to_rows_and_to_prices_sent() -> None:
    """Nothing published or sent is no reduction at all, not an endless one."""
    outcome = make_outcome(40, 20)
    books = replace(outcome.books, read=100, published=25)
    outcome = replace(outcome, books=books)
    assert (per_row(outcome), per_item(outcome)) == (4, 3)
    nothing = replace(outcome, books=replace(books, published=0), kinds=())
    assert (per_row(nothing), per_item(nothing)) == (None, None)


def test_a_ledger_that_does_not_balance_says_so() -> None:
    result = make_result(40, 20)
    books = replace(result.outcome.books, problems=["a", "b"])
    text = printed(replace(result, outcome=replace(result.outcome, books=books)))
    assert "refused: 2 problems" in text


def test_all_that_is_wrong_is_told_and_nothing_is_markup() -> None:
    """Words of faults are printed as they are, brackets included."""
    text = printed(make_broken_result())
    assert "It did not hold: 6 of 9" in text
    assert "fault: client 9: a gap" in text
    assert "</script>: 3 missing" in text
    assert "41 differences" in text


def test_a_search_and_a_comparison_have_their_tables() -> None:
    """A narrow terminal folds what is wide, and loses none of it."""
    capacity, comparison = make_capacity_result(), make_comparison_result()
    for width in (80, 140):
        text = printed(capacity, width)
        assert "65,000" in text
        assert "broke" in text
        assert "WebSocket" in printed(comparison, width)
