"""Whether the ledger adds up."""

from dataclasses import replace

import pytest

from bench.load.balance import balance, per_item, per_row
from bench.load.results import Books
from tests.load.samples import make_outcome

BOOKS = Books(
    read=100,
    published=25,
    superseded=60,
    stale=10,
    refused={"price": 4, "isin": 1},
    windows=3,
    problems=(),
)


@pytest.mark.parametrize(
    ("books", "found"),
    [
        (BOOKS, (True, "balanced")),
        (replace(BOOKS, read=101), (False, "1 trade not accounted for")),
        (replace(BOOKS, read=98), (False, "2 trades too many accounted for")),
        (replace(BOOKS, problems=["a"]), (False, "1 problem")),
    ],
)
def test_what_was_read_became_something(books: Books, found: tuple[bool, str]) -> None:
    """Missing, too many, or a problem that the books themselves found."""
    assert balance(books) == found


def test_reduction_is_of_trades_to_rows_and_to_prices_sent() -> None:
    """Nothing published or sent is no reduction at all, not an endless one."""
    outcome = replace(make_outcome(40, 20), books=BOOKS)
    assert per_row(outcome) == 4
    assert per_item(outcome) == 3
    nothing = replace(outcome, books=replace(BOOKS, published=0), kinds=())
    assert (per_row(nothing), per_item(nothing)) == (None, None)
