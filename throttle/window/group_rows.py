"""What the windows of a batch say of markets and sectors, column by column. Pure.

The rule is in ``contract/group.py``; here it is applied to thousands of rows at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.group import (
    Group,
    GroupFigures,
    change_of,
    market_key,
    sector_key,
    units,
)
from throttle.window.fold_rows import END, OddAmounts
from throttle.window.instrument_columns import PLACE, InstrumentColumns
from throttle.window.row_schema import records, with_columns
from throttle.window.trade_sums import SUMS, to_units
from throttle.window.vector_check import numbers_of_rows

Place = tuple[int, str]
"""The end of a window, ms, and an instrument that is in it."""

_OF_NEWEST = ("instruments", "advancing", "declining", "unchanged", "changes")
_OF_TRADES = ("trades", *SUMS)
_SUMMED = [(name, "sum") for name in (*_OF_NEWEST, *_OF_TRADES)]
_KEY_OF = {"market": market_key, "sector": sector_key}

# Changes beyond this many millionths of a percent are summed apart: no sum overflows.
_LARGEST_CHANGE = 10**12
_REMEMBERED = 65_536


class BatchGroups(NamedTuple):
    """What a batch says of groups: each window, and all of them as one update.

    ``windows[i]`` are the groups of the i-th window, in the order of their keys.
    """

    windows: Sequence[Sequence[Group]]
    together: Sequence[Group]


class GroupRows:
    """The joined rows of a batch, from which its groups are computed.

    ``markets`` are the markets of their instruments, sorted; an unknown one is empty.
    """

    def __init__(
        self,
        rows: pa.Table,
        instruments: InstrumentColumns,
        bodies: Sequence[bytes],
        are_newest: Sequence[bool],
        odd: Iterable[OddAmounts],
        ends_ms: Sequence[int],
    ) -> None:
        """Take in rows with the columns that ``batch.assemble`` needs.

        ``bodies`` are what clients get of them, ``are_newest`` says which rows are the
        newest of their instrument in their window; both of the first rows, those behind
        them show no trade. ``ends_ms`` are the batch's windows.
        """
        prices, _ = numbers_of_rows(pa.array(bodies, pa.binary()))
        nobody = len(rows) - len(bodies)
        are_newest = [*are_newest, *repeat(False, nobody)]
        self._ends_ms = ends_ms
        self._odd = list(odd)
        shown = [*prices.to_pylist(), *repeat(None, nobody)]
        before = instruments.take("prev_close", rows[PLACE]).to_pylist()
        moves = list(map(_move, shown, before))
        changes = [change for _, change in moves]
        self._large = {p: c for p, c in enumerate(changes) if abs(c) > _LARGEST_CHANGE}
        for place in self._large:
            changes[place] = 0
        directions = pa.array([direction for direction, _ in moves], pa.int8())
        self._table = pa.table(
            {
                "place": pa.array(range(len(moves)), pa.int64()),
                "window": rows[END],
                "key": rows["key"],
                **{n: instruments.take(n, rows[PLACE]).fill_null("") for n in _KEY_OF},
                "instruments": pa.array(are_newest, pa.bool_()),
                "advancing": pc.equal(directions, 1).fill_null(False),
                "declining": pc.equal(directions, -1).fill_null(False),
                "unchanged": pc.equal(directions, 0).fill_null(False),
                "changes": pa.array(changes, pa.int64()),
                **{name: rows[name].fill_null(0) for name in _OF_TRADES},
            }
        )
        self.markets = sorted(pc.unique(self._table["market"]).to_pylist())

    def market_of_instrument(self) -> dict[str, str]:
        """Return the market of each of the batch's instruments, empty where unknown."""
        return dict(records(self._table, ("key", "market")))

    def groups(
        self, stale: Set[Place] = frozenset(), unshown: Set[Place] = frozenset()
    ) -> BatchGroups:
        """Return the groups of what is published.

        Of ``stale`` rows only the trades count, of ``unshown`` ones nothing.
        """
        table, odd = self._table, self._odd
        if stale or unshown:
            places = list(records(table, ("window", "key")))
            is_news = pa.array([place not in stale for place in places], pa.bool_())
            newest = pc.and_(table["instruments"], is_news)
            table = with_columns(table, {"instruments": newest})
            table = table.filter([place not in unshown for place in places])
            odd = [one for one in odd if one[:2] not in unshown]
        figures = self._figures(table, odd)
        of_windows = [_encode(figures[end_ms], end_ms) for end_ms in self._ends_ms]
        if len(self._ends_ms) == 1:
            return BatchGroups(of_windows, of_windows[0])
        end_ms = self._ends_ms[-1]
        one = _as_one_window(table, end_ms)
        of_one = [amounts._replace(end_ms=end_ms) for amounts in odd]
        together = self._figures(one, of_one)[end_ms]
        return BatchGroups(of_windows, _encode(together, end_ms))

    def _figures(
        self, table: pa.Table, odd: Sequence[OddAmounts]
    ) -> dict[int, dict[str, GroupFigures]]:
        """Return the figures of every group, by the end of the window and by key."""
        of_newest = {
            name: pc.if_else(table["instruments"], table[name].cast(pa.int64()), 0)
            for name in _OF_NEWEST
        }
        counted = with_columns(table, of_newest)
        figures: dict[int, dict[str, GroupFigures]] = defaultdict(dict)
        for kind, key_of in _KEY_OF.items():
            groups = counted.group_by(["window", kind], use_threads=False)
            sums = groups.aggregate(_SUMMED)
            columns = ("window", kind, *(f"{name}_sum" for name, _ in _SUMMED))
            for window, name, *values in records(sums, columns):
                trades, *parts = values[len(_OF_NEWEST) :]
                group = GroupFigures(**dict(zip(_OF_NEWEST, values, strict=False)))
                group.add_trades(trades, *to_units(parts))
                figures[window][key_of(name)] = group
        self._add_odd(figures, table, odd)
        return figures

    def _add_odd(
        self,
        figures: dict[int, dict[str, GroupFigures]],
        table: pa.Table,
        odd: Sequence[OddAmounts],
    ) -> None:
        if not odd and not self._large:
            return
        columns = ("place", "window", "key", "market", "sector", "instruments")
        rows = list(records(table, columns))
        names = {key: names for _, _, key, *names, _ in rows}
        for end_ms, isin, amounts in odd:
            for key_of, name in zip(_KEY_OF.values(), names[isin], strict=True):
                group = figures[end_ms][key_of(name)]
                group.add_trades(0, amounts.volume, amounts.value)
        for place, window, _, *of_it, is_newest in rows:
            if place in self._large and is_newest:
                for key_of, name in zip(_KEY_OF.values(), of_it, strict=True):
                    figures[window][key_of(name)].changes += self._large[place]


def _as_one_window(table: pa.Table, end_ms: int) -> pa.Table:
    """Return rows as those of one window: of each instrument one is the newest."""
    newest_rows = table.filter(table["instruments"])
    groups = newest_rows.group_by("key", use_threads=False)
    last = groups.aggregate([("window", "max")])
    at = pc.index_in(table["key"], last["key"].combine_chunks())
    is_last = pc.equal(last["window_max"].take(at), table["window"])
    # Of an instrument that has no news nothing is the last.
    newest = pc.and_(table["instruments"], is_last).fill_null(False)
    window = pa.repeat(pa.scalar(end_ms, pa.int64()), len(table))
    return with_columns(table, {"instruments": newest, "window": window})


def _encode(figures: dict[str, GroupFigures], end_ms: int) -> list[Group]:
    return [figures[key].encode(key, end_ms) for key in sorted(figures)]


# The same prices come again and again, window after window.
@lru_cache(_REMEMBERED)
def _move(price: str | None, prev_close: str | None) -> tuple[int | None, int]:
    """Return 1, 0 or -1 (None if unpriced) for up, unchanged, down; and the change."""
    if price is None or prev_close is None:
        return None, 0
    now, before = units(price), units(prev_close)
    return (now > before) - (now < before), change_of(now, before)
