"""What the windows of a batch say of markets and sectors, column by column. Pure.

The rule is in ``contract/group.py``; here it is applied to thousands of rows at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
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
from throttle.window.issue_columns import PLACE, IssueColumns
from throttle.window.trade_sums import SUMS, to_units
from throttle.window.vector_check import prices_of_rows

Place = tuple[int, str]
"""The end of a window, ms, and an issue that is in it."""

_OF_NEWEST = ("issues", "advancing", "declining", "unchanged", "changes")
_OF_TRADES = ("trades", *SUMS)
_SUMMED = [(name, "sum") for name in (*_OF_NEWEST, *_OF_TRADES)]
_KEY_OF = {"market": market_key, "sector": sector_key}
_US_PER_MS = pa.scalar(1_000, pa.int64())

# Changes beyond this many millionths of a percent are summed apart: no sum overflows.
_LARGEST_CHANGE = 10**12
_REMEMBERED = 65_536


class OddSum(NamedTuple):
    """Volume and value of a trade that are in no column, as whole numbers of 10^-36."""

    window_ms: int
    isin: str
    volume: int
    value: int


class BatchGroups(NamedTuple):
    """What a batch says of groups: each window, and all of them as one update.

    ``windows[i]`` are the groups of the i-th window, in the order of their keys.
    """

    windows: Sequence[Sequence[Group]]
    together: Sequence[Group]


class GroupRows:
    """The joined rows of a batch, from which its groups are computed.

    ``markets`` are the markets of their issues, sorted; the one of issues whose market
    nobody has said is empty.
    """

    def __init__(
        self,
        rows: pa.Table,
        issues: IssueColumns,
        bodies: Sequence[bytes],
        are_newest: Sequence[bool],
        odd_sums: Iterable[OddSum],
        ends_ms: Sequence[int],
    ) -> None:
        """Take in rows with the columns that ``batch.assemble`` needs.

        ``bodies`` are what clients get of them, ``are_newest`` says which rows are the
        newest of their issue in their window, ``ends_ms`` are the batch's windows.
        """
        self._ends_ms = ends_ms
        self._odd_sums = list(odd_sums)
        prices = prices_of_rows(pa.array(bodies, pa.binary())).to_pylist()
        moves = list(
            map(_move, prices, issues.take("prev_close", rows[PLACE]).to_pylist())
        )
        changes = [change for _, change in moves]
        is_large = [abs(change) > _LARGEST_CHANGE for change in changes]
        self._large = {}
        if any(is_large):
            places = [place for place, large in enumerate(is_large) if large]
            self._large = {place: changes[place] for place in places}
            changes = [
                0 if large else c for c, large in zip(changes, is_large, strict=True)
            ]
        directions = pa.array([direction for direction, _ in moves], pa.int8())
        ends_us = rows["window.end"].cast(pa.int64())
        self._table = pa.table(
            {
                "place": pa.array(range(len(moves)), pa.int64()),
                "window": pc.divide(ends_us, _US_PER_MS),
                "key": rows["key"],
                **{n: issues.take(n, rows[PLACE]).fill_null("") for n in _KEY_OF},
                "issues": pa.array(are_newest, pa.bool_()),
                "advancing": pc.equal(directions, 1).fill_null(False),
                "declining": pc.equal(directions, -1).fill_null(False),
                "unchanged": pc.equal(directions, 0).fill_null(False),
                "changes": pa.array(changes, pa.int64()),
                **{name: rows[name].fill_null(0) for name in _OF_TRADES},
            }
        )
        self.markets = sorted(pc.unique(self._table["market"]).to_pylist())

    def market_of_issue(self) -> dict[str, str]:
        """Return the market of each issue of the batch, empty where it is unknown."""
        keys, markets = (self._table[n].to_pylist() for n in ("key", "market"))
        return dict(zip(keys, markets, strict=True))

    def groups(self, stale: Set[Place] = frozenset()) -> BatchGroups:
        """Return the groups of what is published: all rows but the ``stale`` ones."""
        table, odd_sums = self._table, self._odd_sums
        if stale:
            windows, keys = (table[n].to_pylist() for n in ("window", "key"))
            places = zip(windows, keys, strict=True)
            mask = pa.array([place not in stale for place in places], pa.bool_())
            table = table.filter(mask)
            odd_sums = [odd for odd in odd_sums if odd[:2] not in stale]
        figures = self._figures(table, odd_sums)
        of_windows = [_encode(figures[end_ms], end_ms) for end_ms in self._ends_ms]
        if len(self._ends_ms) == 1:
            return BatchGroups(of_windows, of_windows[0])
        end_ms = self._ends_ms[-1]
        one, sums = _as_one_window(table, end_ms), []
        for odd in odd_sums:
            sums.append(odd._replace(window_ms=end_ms))
        together = self._figures(one, sums)[end_ms]
        return BatchGroups(of_windows, _encode(together, end_ms))

    def _figures(
        self, table: pa.Table, odd_sums: Iterable[OddSum]
    ) -> dict[int, dict[str, GroupFigures]]:
        """Return the figures of every group, by the end of the window and by key."""
        newest = table["issues"]
        counted = table
        for name in _OF_NEWEST:
            column = table[name].cast(pa.int64())
            if name != "issues":
                column = pc.if_else(newest, column, 0)
            counted = counted.set_column(
                table.schema.get_field_index(name), name, column
            )
        figures: dict[int, dict[str, GroupFigures]] = defaultdict(dict)
        for kind, key_of in _KEY_OF.items():
            groups = counted.group_by(["window", kind], use_threads=False)
            sums = groups.aggregate(_SUMMED)
            columns = [sums[f"{name}_sum"].to_pylist() for name, _ in _SUMMED]
            names = sums["window"].to_pylist(), sums[kind].to_pylist()
            for window, name, *values in zip(*names, *columns, strict=True):
                of_newest = dict(zip(_OF_NEWEST, values, strict=False))
                trades, *parts = values[len(_OF_NEWEST) :]
                group = GroupFigures(**of_newest)
                group.add_trades(trades, *to_units(parts))
                figures[window][key_of(name)] = group
        self._add_odd(figures, table, odd_sums)
        return figures

    def _add_odd(
        self,
        figures: dict[int, dict[str, GroupFigures]],
        table: pa.Table,
        odd_sums: Iterable[OddSum],
    ) -> None:
        """Add what is in no column."""
        odd_sums = list(odd_sums)
        if not odd_sums and not self._large:
            return
        columns = ("place", "window", "key", "market", "sector", "issues")
        rows = list(zip(*(table[name].to_pylist() for name in columns), strict=True))
        names = {key: names for _, _, key, *names, _ in rows}
        for odd in odd_sums:
            for key_of, name in zip(_KEY_OF.values(), names[odd.isin], strict=True):
                group = figures[odd.window_ms][key_of(name)]
                group.add_trades(0, odd.volume, odd.value)
        for place, window, _, *of_it, is_newest in rows:
            if place in self._large and is_newest:
                for key_of, name in zip(_KEY_OF.values(), of_it, strict=True):
                    figures[window][key_of(name)].changes += self._large[place]


def _as_one_window(table: pa.Table, end_ms: int) -> pa.Table:
    """Return rows as those of one window: of each issue one is the newest."""
    newest_rows = table.filter(table["issues"])
    groups = newest_rows.group_by("key", use_threads=False)
    last = groups.aggregate([("window", "max")])
    at = pc.index_in(table["key"], last["key"].combine_chunks())
    is_last = pc.equal(last["window_max"].take(at), table["window"])
    newest = pc.and_(table["issues"], is_last)
    window = pa.repeat(pa.scalar(end_ms, pa.int64()), len(table))
    for name, column in (("issues", newest), ("window", window)):
        table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def _encode(figures: dict[str, GroupFigures], end_ms: int) -> list[Group]:
    return [figures[key].encode(key, end_ms) for key in sorted(figures)]


# The same prices come again and again, window after window.
@lru_cache(_REMEMBERED)
def _move(price: str, prev_close: str | None) -> tuple[int | None, int]:
    """Return 1, 0 or -1 (None if unpriced) for up, unchanged, down; and the change."""
    if prev_close is None:
        return None, 0
    now, before = units(price), units(prev_close)
    return (now > before) - (now < before), change_of(now, before)
