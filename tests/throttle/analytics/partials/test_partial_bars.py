"""Partial bars are what an oracle makes of the same trades, however they are cut."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.bar_entries import (
    ENTRIES,
    ISINS,
    RULES,
    START_MS,
    rows_of,
)
from tests.throttle.analytics.bar_oracle import Entry, fraction
from throttle.analytics.bars.amended_bars import BarPartials
from throttle.analytics.partials.partial_bars import (
    OUT_OF_RANGE,
    combine,
    to_spark,
    trades_of,
)

PARTIALS = BarPartials(2_000, RULES.close_after_ms, 60_000, RULES.lateness_ms)


def bars_of(table: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    """Return partial bars as the oracle has bars."""
    names = ("open", "high", "low", "close", "volume", "value")
    return {
        (row["isin"], round(row["at"].timestamp() * 1000)): {
            **{name: fraction(row[name]) for name in names},
            "trades": row["trades"],
            "revision": row["late"],
        }
        for row in to_spark(table).to_pylist()
    }


@given(ENTRIES, st.integers(0, 40))
def test_partial_bars_are_bars_whatever_was_combined_first(
    entries: list[Entry], cut: int
) -> None:
    """Read in one piece or in two; what is too late is counted by partition."""
    expected, too_late = bar_oracle.bars(entries, RULES)
    counted: Counter[int] = Counter()
    pieces = []
    for piece in (entries[:cut], entries[cut:]):
        if piece:
            trades, _ = trades_of(rows_of(piece))
            table, late = PARTIALS.partials(trades)
            counted += late
            pieces.append(table)
    assert bars_of(combine(pieces)) == expected
    assert counted == too_late


@pytest.mark.parametrize(
    ("price", "size"),
    [
        ("999999999999999999", "1000"),
        ("0.0000000001", "0.0000000001"),
    ],
)
def test_a_value_that_cannot_be_summed_up_is_refused(price: str, size: str) -> None:
    """Too large, or with too many digits after the point: by name, never rounded."""
    entry = Entry(START_MS, 1, 0, ISINS[0], START_MS * 1_000, 1, price, size)
    fine = entry._replace(price="2", position=1, size="3")
    trades, refused = trades_of(rows_of([entry, fine]))
    assert refused == {1: 1}
    assert trades["value"].to_pylist() == [6]
    assert OUT_OF_RANGE == "out_of_range"


def test_a_partial_sum_that_does_not_fit_is_none() -> None:
    """The bar is unfit for good; Spark would take a missing number for nothing."""
    large = Entry(
        START_MS, 0, 0, ISINS[0], START_MS * 1_000, 1, "999999999999999999", "99"
    )
    trades, refused = trades_of(rows_of([large, large._replace(position=1)]))
    assert not refused
    table, _ = PARTIALS.partials(trades)
    [row] = to_spark(table).to_pylist()
    assert (row["value"], row["unfit"], row["volume"]) == (None, 1, 198)
