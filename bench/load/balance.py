"""Whether the ledger adds up, and by how much the stream is calmer. Pure."""

from bench.load import words
from bench.load.results import Books, Outcome


def balance(books: Books) -> tuple[bool, str]:
    """Return whether the ledger balances, and what it came to in words."""
    known = books.published + books.superseded + books.stale
    missing = books.read - known - sum(books.refused.values())
    if missing:
        what = "not accounted for" if missing > 0 else "too many accounted for"
        return False, f"{words.plural(abs(missing), 'trade')} {what}"
    if books.problems:
        return False, words.plural(len(books.problems), "problem")
    return True, "balanced"


def per_row(outcome: Outcome) -> float | None:
    """Return how many trades were read for each row that was published."""
    books = outcome.books
    return books.read / books.published if books.published else None


def per_item(outcome: Outcome) -> float | None:
    """Return how many trades an item of an update stands for."""
    items = sum(kind.items for kind in outcome.kinds)
    return sum(kind.trades for kind in outcome.kinds) / items if items else None
