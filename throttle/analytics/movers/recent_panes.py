"""Panes of hopping windows: which a trade is in, and what they add up to. Pure.

Spans begin more often than they are long, so they overlap; a pane is what lies between
two beginnings, and a span is the sum of its panes. Spark's state keeps the panes.
"""

from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from throttle.analytics.partials.partial_bars import PRICE, SUMS, WIDE
from throttle.analytics.partials.partial_rule import FinalRule, floor
from throttle.contract.bars import TOO_LARGE
from throttle.window.row_schema import with_columns

SCHEMA = pa.schema(
    [
        ("start_ms", pa.int64()),
        ("isin", pa.string()),
        *((name, PRICE) for name in ("open", "high", "low", "close", *SUMS)),
        *((name, pa.int64()) for name in ("trades", "late", "unfit")),
    ]
)

_SUMS = (*SUMS, "trades", "late", "unfit")
_ONLY_NULL = pc.CountOptions("only_null")


@dataclass(frozen=True, slots=True)
class PanePartials(FinalRule):
    """Panes of spans of ``span_ms``, which begin every ``batch_ms``."""

    takes_back: ClassVar[bool] = True

    span_ms: int

    def bounds(
        self, made_ms: pa.ChunkedArray
    ) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
        """Return the panes, and the ends of the last spans that hold them."""
        starts = floor(made_ms, self.batch_ms)
        return starts, pc.add(starts, pa.scalar(self.span_ms, pa.int64()))


class RecentPanes:
    """The newest state of every pane (``SCHEMA``) that a span to come may hold."""

    def __init__(self, span_ms: int, panes: pa.Table) -> None:
        self._span_ms = span_ms
        self._panes = _as_kept(panes)

    def span(self, changed: pa.Table, end_ms: int) -> pa.Table:
        """Take in panes that have changed; return the span that ends at a moment.

        One row per instrument, as ``batch_bars.bars_of`` needs it. From then on no
        earlier span can be asked for.
        """
        # Each pane once, as it was told last.
        panes = _numbered(pa.concat_tables([self._panes, _as_kept(changed)]))
        groups = panes.group_by(["isin", "start_ms"], use_threads=False)
        rows = groups.aggregate([("row", "max")])["row_max"]
        panes = panes.take(rows).drop_columns("row")
        start_ms = end_ms - self._span_ms
        begun = pc.greater_equal(panes["start_ms"], pa.scalar(start_ms, pa.int64()))
        self._panes = panes.filter(begun)
        is_over = pc.less(self._panes["start_ms"], pa.scalar(end_ms, pa.int64()))
        return _added_up(self._panes.filter(is_over), start_ms, end_ms)


def _as_kept(panes: pa.Table) -> pa.Table:
    return panes.select(SCHEMA.names).cast(SCHEMA)


def _added_up(panes: pa.Table, start_ms: int, end_ms: int) -> pa.Table:
    wide = with_columns(panes, {name: panes[name].cast(WIDE) for name in SUMS})
    # Of an instrument the panes follow one another, so their order is that of its
    # trades.
    ordered = _numbered(wide.sort_by("start_ms"))
    # Its open and close are those of the panes that have them.
    priced = pc.if_else(pc.is_valid(ordered["open"]), ordered["row"], None)
    ordered = ordered.append_column("priced", priced)
    groups = ordered.group_by("isin", use_threads=False).aggregate(
        [
            *(("priced", "min"), ("priced", "max"), ("high", "max"), ("low", "min")),
            *((name, "sum") for name in _SUMS),
            *((name, "count", _ONLY_NULL) for name in SUMS),
        ]
    )
    columns = {}
    for name in SUMS:
        total = groups[f"{name}_sum"].cast(WIDE)
        fits = pc.less(total, pa.scalar(TOO_LARGE, WIDE))
        is_whole = pc.equal(groups[f"{name}_count"], pa.scalar(0, pa.int64()))
        # None if a part of it did not fit, or it does not: never a wrong one.
        columns[name] = pc.if_else(
            pc.and_(is_whole, fits), total, pa.scalar(None, WIDE)
        ).cast(PRICE)
    size = len(groups)
    return pa.table(
        {
            "isin": groups["isin"],
            "start_ms": pa.repeat(pa.scalar(start_ms, pa.int64()), size),
            "end_ms": pa.repeat(pa.scalar(end_ms, pa.int64()), size),
            "open": ordered["open"].take(groups["priced_min"]),
            "high": groups["high_max"],
            "low": groups["low_min"],
            "close": ordered["close"].take(groups["priced_max"]),
            **columns,
            "trades": groups["trades_sum"],
            "late": groups["late_sum"],
            "unfit": groups["unfit_sum"],
        }
    )


def _numbered(table: pa.Table) -> pa.Table:
    return table.append_column("row", pa.array(range(len(table)), pa.int64()))
