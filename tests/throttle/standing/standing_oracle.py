"""What has to be shown where trades are taken back, in plain Python from the log."""

import json
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from tests.logged import Logged
from tests.oracle import EVERYTHING, Sums

Order = tuple[int, int, int]
Day = tuple[int, Decimal, Decimal, Decimal | None, Decimal | None, Decimal | None]
"""Trades, volume, value, high, low and open."""

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
    def order(self) -> Order:
        return self.fields["time"], self.fields["seq"], self.logged.position

    @property
    def counts(self) -> list[str]:
        return self.fields.get("updates", EVERYTHING).split(",")

    @property
    def sums(self) -> Sums:
        fields = self.fields
        return Sums.of_trade(fields["price"], fields["size"], ",".join(self.counts))


class StandingOracle:
    """An instrument: goes through the log batch by batch, each trade by itself."""

    def __init__(self) -> None:
        self.shown: Shown | None = None
        self.taken_back = 0
        self.unknown = 0
        self._standing: list[_Entry] = []
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
            of_last = [one for one in trades if "last" in one.counts]
            is_last = place == len(windows) - 1
            if is_last and is_restated:
                of_last = [one for one in self._standing if "last" in one.counts]
            self._show(of_last, is_restated=is_last and is_restated)
            total = None if not trades else _NONE
            for one in trades:
                total = one.sums if total in (None, _NONE) else one.sums.plus(total)
            if is_last and is_restated and total is None:
                total = _NONE
            sums.append(None if self.shown is None else total)
        return sums

    def day(self) -> Day:
        """Return the day of all that stands."""
        total = _NONE
        for one in self._standing:
            total = one.sums.plus(total)
        of_last = [one for one in self._standing if "last" in one.counts]
        first = min(of_last, key=lambda one: one.order, default=None)
        opened = None if first is None else Decimal(first.fields["price"])
        return *total, opened

    def _enter(self, entry: _Entry) -> bool:
        """Return whether it takes a trade back."""
        fields = entry.fields
        target = fields.get("cancels", fields.get("corrects"))
        named = [one for one in self._standing if one.fields["seq"] == target]
        if target is not None and not named:
            self.unknown += 1
        newest = max((one.order[:2] for one in named), default=None)
        gone = [one for one in named if one.order[:2] == newest]
        self.taken_back += len(gone)
        self._gone |= {one.order for one in gone}
        self._standing = [one for one in self._standing if one not in gone]
        if "price" in fields:
            self._standing.append(entry)
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
