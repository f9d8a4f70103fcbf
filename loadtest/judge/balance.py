"""Whether the ledger adds up, and by how much the stream is calmer. Pure."""

from loadtest.figures import words
from loadtest.results import BookMovement, Outcome


def balance(books: BookMovement) -> str:
    """Return in words whether the ledger balances."""
    problems = len(books.problems)
    return words.plural(problems, "problem") if problems else "balanced"


def per_row(outcome: Outcome) -> float | None:
    """Return how many trades were read for each row that was published."""
    books = outcome.books
    return books.read / books.published if books.published else None


def per_item(outcome: Outcome) -> float | None:
    """Return how many trades an item of an update stands for."""
    items = sum(kind.items for kind in outcome.kinds)
    return sum(kind.trades for kind in outcome.kinds) / items if items else None
