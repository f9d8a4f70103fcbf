"""A span is the sum of its panes, whatever came when, as an oracle has it."""

from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings

from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.bar_entries import ENTRIES, RULES, START_MS, rows_of
from tests.throttle.analytics.bar_oracle import Entry, fraction
from throttle.analytics.batch_bars import bars_of
from throttle.analytics.movers.recent_panes import SCHEMA, PanePartials, RecentPanes
from throttle.analytics.partials.partial_bars import combine, to_spark, trades_of
from throttle.contract.bars import Bar

AMOUNTS = ("open", "high", "low", "close", "volume", "value")


def panes_of(entries: list[Entry]) -> tuple[pa.Table, Counter[int]]:
    """Return panes as Spark's state would add them up, and what was too late."""
    trades, _ = trades_of(rows_of(entries))
    rule = PanePartials(RULES.every_ms, RULES.close_after_ms, RULES.span_ms)
    partials, too_late = rule.partials(trades)
    table = to_spark(combine([partials]))
    start_ms = pc.divide(table["at"].cast(pa.int64()), pa.scalar(1_000, pa.int64()))
    return table.append_column("start_ms", start_ms).select(SCHEMA.names), too_late


def sums_of(bar: Bar) -> dict[str, Any]:
    """Return a bar as the oracle has it."""
    amounts = {name: fraction(getattr(bar, name)) for name in AMOUNTS}
    return {**amounts, "trades": bar.trades}


@settings(max_examples=25)
@given(ENTRIES)
def test_every_span_is_the_sum_of_its_panes(entries: list[Entry]) -> None:
    """At each moment of all that had come by then, as batches bring it."""
    recent = RecentPanes(RULES.span_ms, SCHEMA.empty_table())
    last_ms = max(e.append_ms for e in entries) + RULES.span_ms
    # A batch may hold several spans' ends, as after an outage.
    batch_ms = 3 * RULES.every_ms
    for end_ms in range(START_MS, last_ms, batch_ms):
        by_then_ms = end_ms + RULES.close_after_ms
        had_come = [e for e in entries if e.append_ms < by_then_ms]
        if not had_come:
            continue
        panes, _ = panes_of(had_come)
        is_new = [e.append_ms >= by_then_ms - batch_ms for e in had_come]
        new = {e.isin for e, one in zip(had_come, is_new, strict=True) if one}
        changed = panes.filter(pc.is_in(panes["isin"], pa.array(new, pa.string())))
        found = {bar.isin: bar for bar in bars_of(recent.span(changed, end_ms))}
        expected = bar_oracle.span(entries, end_ms, RULES)
        assert {isin: sums_of(bar) for isin, bar in found.items()} == expected
        bounds = {(bar.start_ms, bar.end_ms) for bar in found.values()}
        assert bounds <= {(end_ms - RULES.span_ms, end_ms)}


@given(ENTRIES)
def test_a_trade_is_in_a_pane_or_too_late(entries: list[Entry]) -> None:
    """It is too late when every span with its pane had been listed."""
    panes, too_late = panes_of(entries)
    in_panes = sum(panes["trades"].to_pylist())
    assert in_panes + too_late.total() == len(entries)
    late = sum(
        1
        for e in entries
        if not any(
            e.isin in bar_oracle.span([e], end_ms, RULES)
            for end_ms in range(START_MS, e.append_ms + 2 * RULES.span_ms, 10_000)
        )
    )
    assert too_late.total() == late


def test_a_sum_that_does_not_fit_is_none() -> None:
    """Of one pane, or of several; what does fit stays."""
    row = dict.fromkeys(("open", "high", "low", "close"), Decimal(1))
    row |= {"start_ms": 0, "trades": 1, "late": 0, "unfit": 0, "value": Decimal(1)}
    large = Decimal(6) * 10**19
    rows = [
        {**row, "isin": "A", "volume": None},
        {**row, "isin": "A", "volume": Decimal(2), "start_ms": 10},
        {**row, "isin": "B", "volume": large},
        {**row, "isin": "B", "volume": large, "start_ms": 10},
        {**row, "isin": "C", "volume": large, "unfit": 1},
    ]
    recent = RecentPanes(20, SCHEMA.empty_table())
    spans = recent.span(pa.Table.from_pylist(rows, SCHEMA), 20)
    found = {bar.isin: (bar.volume, bar.value) for bar in bars_of(spans)}
    assert found == {"A": (None, 2), "B": (None, 2), "C": (None, None)}
