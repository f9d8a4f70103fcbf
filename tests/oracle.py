"""What must have been published, computed from the trade log in plain Python."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Context, Decimal, Inexact
from itertools import chain
from typing import Any, NamedTuple

from tests.logged import Logged

EXACT = Context(prec=200, traps=[Inexact])
"""Numbers are never rounded: one with more digits is an error."""


EVERYTHING = "last,range,volume"
"""What a trade counts for that says nothing."""


class Sums(NamedTuple):
    """Of an instrument's trades: number, sums of size and price times size, range.

    The range is of those that count for it: None if none does.
    """

    trades: int
    volume: Decimal
    value: Decimal
    high: Decimal | None
    low: Decimal | None

    @classmethod
    def of_trade(cls, price: str, size: str, updates: str = EVERYTHING) -> "Sums":
        """Return those of one trade, which counts for what ``updates`` names."""
        names = updates.split(",")
        paid, traded = Decimal(price), Decimal(size if "volume" in names else 0)
        extreme = paid if "range" in names else None
        return cls(1, traded, EXACT.multiply(paid, traded), extreme, extreme)

    def plus(self, other: "Sums") -> "Sums":
        """Return those of the trades of both."""
        return Sums(
            self.trades + other.trades,
            EXACT.add(self.volume, other.volume),
            EXACT.add(self.value, other.value),
            max(filter(None, (self.high, other.high)), default=None),
            min(filter(None, (self.low, other.low)), default=None),
        )


class Item(NamedTuple):
    """An instrument's window: the shown trade by time, seq, position; sums of all."""

    order: tuple[int, int, int]
    price: str
    size: str
    sums: Sums
    revision: int = 0


Windows = Mapping[int, Mapping[str, Item]]
"""The items of windows by their ends, then by ISIN."""


def by_append_time(window_ms: int) -> Callable[[Logged], int]:
    """Return the rule that puts an entry into the window in which it was appended."""
    return lambda entry: (entry.append_ms // window_ms + 1) * window_ms


class Expected(NamedTuple):
    """What must have been published, and what must have become of the trades.

    ``books`` counts those published, superseded, stale and not last; ``unshown`` has
    the sums of those that are in no item.
    """

    windows: dict[int, dict[str, Item]]
    books: Counter[str]
    unshown: dict[str, Sums]


class _Traded:
    """The trades of an instrument in a window."""

    def __init__(self) -> None:
        self.sums: Sums | None = None
        self.newest: tuple[tuple[int, ...], Item] | None = None
        self.of_last = 0

    def add(self, entry: Logged, trade: Mapping[str, Any]) -> None:
        price, size = trade["price"], trade["size"]
        updates = trade.get("updates", EVERYTHING)
        own = Sums.of_trade(price, size, updates)
        self.sums = own if self.sums is None else self.sums.plus(own)
        if "last" in updates.split(","):
            self.of_last += 1
            order = trade["time"], trade["seq"], entry.position
            place = *order, entry.partition
            if self.newest is None or place > self.newest[0]:
                self.newest = place, Item(order, price, size, own)


def expected_windows(
    entries: Iterable[Logged],
    upto_ms: int,
    window_ms: int = 2_000,
    window_of: Callable[[Logged], int] | None = None,
) -> Expected:
    """Return what must have been published up to a window.

    ``entries`` are valid trades. ``window_of`` says by its end in which window an entry
    is, unless the time of its append does. Where all trades of an instrument are older
    than what is shown, or do not count for the last price, its item is what is shown,
    with their sums; if nothing was ever shown, there is none.
    """
    window_of = window_of or by_append_time(window_ms)
    windows: dict[int, dict[str, _Traded]] = {}
    for entry in entries:
        trade = json.loads(entry.payload)
        of_window = windows.setdefault(window_of(entry), {})
        of_window.setdefault(trade["isin"], _Traded()).add(entry, trade)
    shown: dict[str, Item] = {}
    expected: dict[int, dict[str, Item]] = {}
    books: Counter[str] = Counter(published=0, superseded=0, stale=0, not_last=0)
    unshown: list[tuple[str, Sums]] = []
    for end in range(min(windows), upto_ms + 1, window_ms):
        expected[end] = {}
        for isin, made in windows.get(end, {}).items():
            assert made.sums is not None
            books["not_last"] += made.sums.trades - made.of_last
            if made.newest is not None:
                item = made.newest[1]
                is_news = isin not in shown or item.order > shown[isin].order
                if is_news:
                    shown[isin] = item
                books["published" if is_news else "stale"] += 1
                books["superseded"] += made.of_last - 1
            if isin in shown:
                expected[end][isin] = shown[isin]._replace(sums=made.sums)
            else:
                unshown.append((isin, made.sums))
    return Expected(expected, books, add_up(unshown))


def sums_of_trades(entries: Iterable[Logged]) -> dict[str, Sums]:
    """Return the sums of valid trades by ISIN, whatever their order and windows."""
    return add_up(map(_sums_of, entries))


def _sums_of(entry: Logged) -> tuple[str, Sums]:
    trade = json.loads(entry.payload)
    updates = trade.get("updates", EVERYTHING)
    return trade["isin"], Sums.of_trade(trade["price"], trade["size"], updates)


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
