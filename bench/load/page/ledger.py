"""The ledger as a balance, and by how much the stream is calmer. Pure."""

from bench.load import words
from bench.load.balance import balance, per_item, per_row
from bench.load.page.markup import Markup, element, join, level, panel, table
from bench.load.results import Outcome

NUMBER = "number"


def ledger(outcome: Outcome) -> Markup:
    """Return the books as a balance: one side is what was read."""
    books = outcome.books
    refused = sum(books.refused.values())
    reasons = ", ".join(
        f"{reason} {words.count(count)}"
        for reason, count in sorted(books.refused.items())
    )
    parts = [
        ("published", books.published, "accent", "the newest of its issue and window"),
        ("superseded", books.superseded, "line-strong", "older, in the same window"),
        ("stale", books.stale, "amber", "older than what was published before"),
        ("refused", refused, "red", reasons or "broken trades; there was none"),
    ]
    total = sum(count for _, count, _, _ in parts)
    rows = [
        [
            join([_dot(colour), name]),
            words.count(count),
            _share(count, total),
            what,
        ]
        for name, count, colour, what in parts
    ]
    return panel(
        "ledger",
        "The ledger",
        "What became of every trade that was read during the run, by the product's own "
        "books: nothing is dropped without being counted.",
        _bar([(count, colour) for _, count, colour, _ in parts], total),
        table(
            "Ledger",
            [("", ""), ("Trades", NUMBER), ("Share", NUMBER), ("", "soft")],
            rows,
            ["read", words.count(books.read), "", level(*balance(books))],
        ),
        element("ul", *(element("li", one) for one in books.problems), class_="wrong")
        if books.problems
        else "",
        element("p", *_reduction(outcome), class_="says"),
    )


def _share(count: int, total: int) -> str:
    if not total:
        return words.NONE
    # What is there is never written as nothing.
    is_little = 0 < count < total / 2_000
    return "under 0.1%" if is_little else f"{count * 100 / total:.1f}%"


def _dot(colour: str) -> Markup:
    return Markup(f'<i class="dot" style="background: var(--{colour})"></i>')


def _bar(parts: list[tuple[int, str]], total: int) -> Markup:
    """Return the parts as a bar; what is there stays visible, however small."""
    if not total:
        return Markup("")
    pieces = (
        f'<i style="flex: {count} 1 2px; background: var(--{colour})"></i>'
        for count, colour in parts
        if count
    )
    return Markup(f'<div class="bar" aria-hidden="true">{"".join(pieces)}</div>')


def _reduction(outcome: Outcome) -> list[str]:
    books = outcome.books
    sent = sum(kind.items for kind in outcome.kinds)
    found = [
        element("b", "Reduction: "),
        f"{words.ratio(per_row(outcome))} trades in for each row published in "
        f"{words.plural(books.windows, 'window')}",
    ]
    if sent:
        found.append(
            f"; the {words.count(sent)} prices sent stand for "
            f"{words.ratio(per_item(outcome))} trades each"
        )
    return [*found, "."]
