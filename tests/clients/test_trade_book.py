"""Every trade of some instruments, as a client gives them out."""

from decimal import Decimal
from typing import Any

import pytest

from tickthrottle_client import Traded, TradeEntry, sums_of
from tickthrottle_client.trade_book import TradeBook, read_entry

A, B = "trades:KR7005930003", "trades:KR7000660001"


def message(number: int, missed: int | None, *prices: str) -> dict[str, Any]:
    """Return a message of the first instrument."""
    entries = [{"time": 1, "window": 2_000, "price": Decimal(p)} for p in prices]
    isin = A.removeprefix("trades:")
    return {"isin": isin, "number": number, "missed": missed, "entries": entries}


def test_entries_have_their_number_and_what_is_missing_before_them() -> None:
    """By ISIN or code; after a lost connection nobody knows how many that are."""
    book, seen, others = TradeBook(), list[TradeEntry](), list[TradeEntry]()
    assert book.add([A, "trades:005930"], seen.append) == [A, "trades:005930"]
    assert book.add([A], others.append) == []
    book.name({"trades:005930": A})
    book.take(message(7, 0, "1", "2"))
    book.take(message(12, 3, "3"))
    book.lose()
    book.take(message(1, 0, "4"))
    shown = [(e["number"], e["missed"], e["price"]) for e in others]
    assert shown == [(7, 0, 1), (8, 0, 2), (12, 3, 3), (1, None, 4)]
    # Who listens by both names hears of it twice.
    assert len(seen) == 2 * len(others)
    assert book.remove([A], others.append) == []
    assert book.remove([A, B], seen.append) == [A]
    assert list(book) == ["trades:005930"]


def test_one_that_never_had_any_has_lost_none() -> None:
    """What comes first after a start is what follows."""
    book, seen = TradeBook(), list[TradeEntry]()
    book.lose()
    book.add([A], seen.append)
    book.take(message(1, 0, "1"))
    assert seen[0]["missed"] == 0


def test_what_no_gateway_sends_is_refused() -> None:
    """By any exception."""
    for entry in (
        {"time": 1},
        {"time": "1", "window": 1},
        {"time": -1, "window": 1},
        {"time": 1, "window": 1, "price": "NaN"},
    ):
        with pytest.raises((ValueError, KeyError, TypeError, ArithmeticError)):
            read_entry(entry)


def test_trades_add_up_by_what_they_count_for() -> None:
    """What takes a trade back is none."""
    trades = [
        {"price": Decimal(10), "size": Decimal("0.5")},
        {"price": Decimal(12), "size": Decimal(2), "updates": "last,volume"},
        {"price": Decimal(7), "size": Decimal(3), "updates": "none"},
        {"cancels": 1},
    ]
    found = sums_of(trades)
    assert found == Traded(3, Decimal("2.5"), Decimal(29), Decimal(10), Decimal(10))
    assert sums_of([]) == Traded(0, Decimal(0), Decimal(0), None, None)
