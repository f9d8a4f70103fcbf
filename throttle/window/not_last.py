"""Trades of a batch that do not count for the last price, beside the others. Pure.

They are nobody's latest trade. What they count for is in the sums of their issue's row
in the window; where it has no other trade its row shows none of its own
(``NO_VERSION``), and restates what is shown once it is published.
"""

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from throttle.contract.snapshot import Row
from throttle.contract.trade_order import NO_VERSION
from throttle.window import turnover
from throttle.window.fold_rows import END
from throttle.window.issue_columns import PLACE, IssueColumns
from throttle.window.row_schema import NOT_LAST_PREFIX

Sums = Mapping[tuple[int, str], bytes]
"""Of the end of a window, ms, and an issue: what its row says (``row_sums.py``)."""


def split_not_last(rows: pa.Table, issues: IssueColumns) -> tuple[pa.Table, pa.Table]:
    """Return rows that are no trades of the last price: these, and all others.

    ``key`` of these becomes their ISIN, and ``place``, which their own key has not got
    by the join, that of their issue.
    """
    are_not_last = pc.starts_with(rows["key"], NOT_LAST_PREFIX)
    if not pc.any(are_not_last).as_py():
        return rows.slice(0, 0), rows
    trades = rows.filter(are_not_last)
    isins = pc.utf8_slice_codeunits(trades["key"], len(NOT_LAST_PREFIX))
    trades = _with_column(trades, "key", isins)
    if PLACE in trades.column_names:
        trades = _with_column(trades, PLACE, issues.places_of(isins))
    return trades, rows.filter(pc.invert(are_not_last))


def rows_of(trades: pa.Table, sums: Sums) -> list[tuple[int, int, int, Row]]:
    """Return of each row of trades its window's end, partition, trades, and its row."""
    names = (END, "partition", "trades", "key")
    columns = zip(*(trades[name].to_pylist() for name in names), strict=True)
    return [
        (end_ms, partition, number, Row(isin, NO_VERSION, sums[end_ms, isin], b""))
        for end_ms, partition, number, isin in columns
    ]


def turnover_of(rows: pa.Table) -> turnover.ByPartition:
    """Return what such trades among the rows of a batch come to."""
    # Those in no column have a row of their own, whose key has the trade's within.
    of_them = pc.match_substring(rows["key"], NOT_LAST_PREFIX)
    return turnover.of_all(rows.filter(of_them), "latest.payload")


def _with_column(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    at = table.schema.get_field_index(name)
    return table.set_column(at, table.schema.field(at), column)
