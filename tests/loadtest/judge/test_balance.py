"""Whether the ledger adds up."""

from dataclasses import replace

from loadtest.judge.balance import balance, per_item, per_row
from loadtest.results import BookMovement
from tests.loadtest.samples import make_outcome

BOOKS = BookMovement(
    read=100,
    published=25,
    superseded=60,
    stale=10,
    refused={"price": 4, "isin": 1},
    windows=3,
    problems=(),
)


def test_books_balance_if_they_have_no_problem() -> None:
    """It is counted."""
    assert balance(BOOKS) == "balanced"
    assert balance(replace(BOOKS, problems=["a", "b"])) == "2 problems"


def test_reduction_is_of_trades_to_rows_and_to_prices_sent() -> None:
    """Nothing published or sent is no reduction at all, not an endless one."""
    outcome = replace(make_outcome(40, 20), books=BOOKS)
    assert per_row(outcome) == 4
    assert per_item(outcome) == 3
    nothing = replace(outcome, books=replace(BOOKS, published=0), kinds=())
    assert (per_row(nothing), per_item(nothing)) == (None, None)
