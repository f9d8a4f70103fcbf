"""What has to be shown where trades are taken back, in plain Python from the log."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from tests.logged import Logged
from tests.oracle import EVERYTHING, Item, Sums

Order = tuple[int, int, int]
Place = tuple[int, int]
"""A partition, and a position in it."""

_NONE = Sums(0, Decimal(0), Decimal(0), None, None)


class Shown(NamedTuple):
    """What an instrument shows: newer is greater."""

    revision: int
    order: Order
    price: str


class _Entry(NamedTuple):
    logged: Logged
    fields: Mapping[str, Any]

    @property
    def place(self) -> Place:
        return self.logged.partition, self.logged.position

    @property
    def order(self) -> Order:
        return self.fields["time"], self.fields["seq"], self.logged.position

    @property
    def is_of_last(self) -> bool:
        return "last" in self.fields.get("updates", EVERYTHING).split(",")

    @property
    def sums(self) -> Sums:
        updates = self.fields.get("updates", EVERYTHING)
        return Sums.of_trade(self.fields["price"], self.fields["size"], updates)


class StandingOracle:
    """An instrument: goes through the log batch by batch, each trade by itself."""

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self.taken_back = 0
        self.unknown = 0
        self._standing: dict[Place, _Entry] = {}
        self._by_seq: dict[int, list[_Entry]] = {}
        self._gone: set[Order] = set()

    def take(self, windows: Sequence[Iterable[Logged]]) -> list[Sums | None]:
        """Take in a batch's windows, oldest first; return the sums of each row.

        None stands for no row. What is shown is that of the batch's end.
        """
        sums: list[Sums | None] = []
        is_restated = False
        for place, window in enumerate(windows):
            entries = [_Entry(one, json.loads(one.payload)) for one in window]
            is_restated |= any([self._enter(entry) for entry in entries])
            trades = [entry for entry in entries if "price" in entry.fields]
            of_last = [one for one in trades if one.is_of_last]
            is_last = place == len(windows) - 1
            if is_last and is_restated:
                of_last = [one for one in self._standing.values() if one.is_of_last]
            self._show(of_last, is_restated=is_last and is_restated)
            total = None if not trades else _NONE
            for one in trades:
                total = one.sums if total in (None, _NONE) else one.sums.plus(total)
            if is_last and is_restated and total is None:
                total = _NONE
            sums.append(None if self.shown is None else total)
        return sums

    def day(
        self, is_of_day: Callable[[Logged], bool] = lambda _: True
    ) -> tuple[Sums, Decimal | None]:
        """Return the sums of all that stands of a day, and its first price."""
        standing = [one for one in self._standing.values() if is_of_day(one.logged)]
        total = _NONE
        for one in standing:
            total = one.sums.plus(total)
        of_last = [one for one in standing if one.is_of_last]
        first = min(of_last, key=lambda one: one.order, default=None)
        return total, None if first is None else Decimal(first.fields["price"])

    def _enter(self, entry: _Entry) -> bool:
        """Return whether it takes a trade back."""
        fields = entry.fields
        target = fields.get("cancels", fields.get("corrects"))
        named = [] if target is None else self._by_seq.get(target, [])
        if target is not None and not named:
            self.unknown += 1
        newest = max((one.order[:2] for one in named), default=None)
        gone = [one for one in named if one.order[:2] == newest]
        self.taken_back += len(gone)
        for one in gone:
            named.remove(one)
            del self._standing[one.place]
            self._gone.add(one.order)
        if "price" in fields:
            self._standing[entry.place] = entry
            self._by_seq.setdefault(fields["seq"], []).append(entry)
        return bool(gone)

    def _show(self, trades: Iterable[_Entry], *, is_restated: bool) -> None:
        newest = max(trades, key=lambda one: one.order, default=None)
        if newest is None:
            return
        before, price = self.shown, newest.fields["price"]
        revision = 0 if before is None else before.revision
        if before is None or newest.order > before.order:
            self.shown = Shown(revision, newest.order, price)
        elif is_restated and before.order in self._gone:
            self.shown = Shown(revision + 1, newest.order, price)


Placed = Mapping[tuple[int, str], Sequence[Logged]]
"""What the log has of a window, by its end, and of an instrument, in its order."""


def by_windows(entries: Iterable[Logged], window_of: Callable[[Logged], int]) -> Placed:
    """Return entries by the end of their window and by instrument."""
    placed: dict[tuple[int, str], list[Logged]] = {}
    for one in entries:
        isin = json.loads(one.payload)["isin"]
        placed.setdefault((window_of(one), isin), []).append(one)
    return placed


def go_through(
    batches: Iterable[Sequence[int]],
    placed: Placed,
    rows: Mapping[int, Mapping[str, Item]],
    oracles: Mapping[str, StandingOracle],
) -> Iterator[int]:
    """Compare rows with what stands, batch by batch; yield the end of each.

    ``batches`` are the ends of their windows, ``rows`` are those of each window.
    """
    for ends in batches:
        for isin, oracle in oracles.items():
            sums = oracle.take([placed.get((end, isin), ()) for end in ends])
            found = [rows[end].get(isin) for end in ends]
            said = [None if row is None else row.sums for row in found]
            assert said == sums, (isin, ends)
            if found[-1] is not None:
                shown = Shown(found[-1].revision, found[-1].order, found[-1].price)
                assert shown == oracle.shown, (isin, ends)
        yield ends[-1]
