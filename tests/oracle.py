"""What must have been published, computed from the trade log in plain Python."""

import json
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, Inexact
from itertools import chain
from typing import NamedTuple

from tests.logged import Logged

EXACT = Context(prec=200, traps=[Inexact])
"""Numbers are never rounded: one with more digits is an error."""


class Sums(NamedTuple):
    """Of an instrument's trades: number, sums of size and price times size, range."""

    trades: int
    volume: Decimal
    value: Decimal
    high: Decimal
    low: Decimal

    @classmethod
    def of_trade(cls, price: str, size: str) -> "Sums":
        """Return those of one trade."""
        paid, traded = Decimal(price), Decimal(size)
        return cls(1, traded, EXACT.multiply(paid, traded), paid, paid)

    def plus(self, other: "Sums") -> "Sums":
        """Return those of the trades of both."""
        return Sums(
            self.trades + other.trades,
            EXACT.add(self.volume, other.volume),
            EXACT.add(self.value, other.value),
            max(self.high, other.high),
            min(self.low, other.low),
        )


class Item(NamedTuple):
    """An instrument's window: the shown trade by time, seq, position; sums of all."""

    order: tuple[int, int, int]
    price: str
    size: str
    sums: Sums


Windows = Mapping[int, Mapping[str, Item]]
"""The items of windows by their ends, then by ISIN."""


def by_append_time(window_ms: int) -> Callable[[Logged], int]:
    """Return the rule that puts an entry into the window in which it was appended."""
    return lambda entry: (entry.append_ms // window_ms + 1) * window_ms


def expected_windows(
    entries: Iterable[Logged],
    upto_ms: int,
    window_ms: int = 2_000,
    window_of: Callable[[Logged], int] | None = None,
) -> dict[int, dict[str, Item]]:
    """Return what must have been published up to a window.

    ``entries`` are valid trades. ``window_of`` says by its end in which window an entry
    is, unless the time of its append does. Where all trades of an instrument are older
    than what is shown, its item is what is shown, with their sums.
    """
    window_of = window_of or by_append_time(window_ms)
    windows: dict[int, dict[str, tuple[tuple[int, ...], Item]]] = {}
    for entry in entries:
        trade = json.loads(entry.payload)
        price, size = trade["price"], trade["size"]
        order = trade["time"], trade["seq"], entry.position
        item = Item(order, price, size, Sums.of_trade(price, size))
        newest = (*order, entry.partition), item
        of_window = windows.setdefault(window_of(entry), {})
        if (before := of_window.get(trade["isin"])) is not None:
            sums = item.sums.plus(before[1].sums)
            place, item = max(newest, before, key=lambda one: one[0])
            newest = place, item._replace(sums=sums)
        of_window[trade["isin"]] = newest
    shown: dict[str, Item] = {}
    expected: dict[int, dict[str, Item]] = {}
    for end in range(min(windows), upto_ms + 1, window_ms):
        expected[end] = {}
        for isin, (_, item) in windows.get(end, {}).items():
            if isin not in shown or item.order > shown[isin].order:
                shown[isin] = item
            expected[end][isin] = shown[isin]._replace(sums=item.sums)
    return expected


def count_news(windows: Windows) -> int:
    """Return how many items of some windows in a row show something newer."""
    news, shown = 0, dict[str, tuple[int, int, int]]()
    for isin, item in chain.from_iterable(w.items() for w in windows.values()):
        if isin not in shown or item.order > shown[isin]:
            news, shown[isin] = news + 1, item.order
    return news


def sums_of_trades(entries: Iterable[Logged]) -> dict[str, Sums]:
    """Return the sums of valid trades by ISIN, whatever their order and windows."""
    trades = (json.loads(entry.payload) for entry in entries)
    return add_up((t["isin"], Sums.of_trade(t["price"], t["size"])) for t in trades)


def sums_of_items(windows: Windows) -> dict[str, Sums]:
    """Return the sums of all items of some windows, by ISIN."""
    items = chain.from_iterable(window.items() for window in windows.values())
    return add_up((isin, item.sums) for isin, item in items)


def add_up(parts: Iterable[tuple[str, Sums]]) -> dict[str, Sums]:
    """Return the sum of what there is of each ISIN."""
    sums: dict[str, Sums] = {}
    for isin, part in parts:
        sums[isin] = part.plus(sums[isin]) if isin in sums else part
    return sums
