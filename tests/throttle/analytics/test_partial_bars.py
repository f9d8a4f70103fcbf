"""Partial bars are what an oracle makes of the same trades, however they are cut."""

from collections import Counter, defaultdict
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import Trade
from ingest.tradelog.contract import Chunk
from tests.gateway.samples import make_isins
from tests.throttle.analytics import bar_oracle
from tests.throttle.analytics.bar_oracle import Entry, Rules
from throttle.analytics.partial_bars import (
    OUT_OF_RANGE,
    bar_partials,
    combine,
    pane_partials,
    to_spark,
    trades_of,
)
from throttle.window.source_rows import trade_rows

START_MS = 1_773_964_800_000
ISINS = make_isins(3)
RULES = Rules(lateness_ms=120_000)
AMOUNTS = st.decimals(min_value="0.000001", max_value=10**8, places=6).map(
    lambda amount: f"{amount:f}"
)
ENTRIES = st.lists(
    st.builds(
        lambda isin, at_ms, delay_ms, seq, price, size: Entry(
            START_MS + at_ms + delay_ms,
            ISINS.index(isin) % 2,
            0,
            isin,
            (START_MS + at_ms) * 1_000 + seq,
            seq,
            price,
            size,
        ),
        st.sampled_from(ISINS),
        st.integers(0, 200_000),
        st.integers(-1_000, 300_000),
        st.integers(0, 5),
        AMOUNTS,
        AMOUNTS,
    ),
    min_size=1,
    max_size=40,
).map(lambda found: [e._replace(position=n) for n, e in enumerate(found)])


def rows_of(entries: list[Entry]) -> pa.Table:
    """Return the checked rows of entries, as the source has them."""
    trades = [Trade(e.isin, e.time_us, e.seq, e.price, e.size) for e in entries]
    chunk = Chunk(
        pa.array([entry.position for entry in entries], pa.int64()),
        pa.array([entry.append_ms for entry in entries], pa.int64()),
        pa.array([one.to_wire() for one in trades], pa.binary()),
        len(entries),
    )
    partitions = pa.array([entry.partition for entry in entries], pa.int32())
    return trade_rows(chunk, partitions, 0, 2**50, 5_000, every_trade=True)


def bars_of(table: pa.Table) -> dict[tuple[str, int], dict[str, Any]]:
    """Return partial bars as the oracle has bars."""
    names = ("open", "high", "low", "close", "volume", "value")
    return {
        (row["isin"], round(row["at"].timestamp() * 1000)): {
            **{name: Fraction(row[name]) for name in names},
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
            table, late = bar_partials(trades, 60_000, 1_000, RULES.lateness_ms)
            counted += late
            pieces.append(table)
    assert bars_of(combine(pieces)) == expected
    assert counted == too_late


@given(ENTRIES)
def test_panes_make_every_span(entries: list[Entry]) -> None:
    """A span is the sum of its panes that came before it was listed."""
    trades, _ = trades_of(rows_of(entries))
    table, too_late = pane_partials(
        trades, RULES.every_ms, RULES.span_ms, RULES.close_after_ms
    )
    rows = to_spark(table).to_pylist()
    assert sum(row["trades"] for row in rows) + too_late.total() == len(entries)
    for end_ms in range(START_MS, START_MS + 500_000, RULES.every_ms):
        found: dict[str, int] = defaultdict(int)
        for row in rows:
            at_ms = round(row["at"].timestamp() * 1000)
            is_within = end_ms - RULES.span_ms <= at_ms < end_ms
            if is_within and end_ms > row["closed_ms"]:
                found[row["isin"]] += row["trades"]
        expected = bar_oracle.span(entries, end_ms, RULES)
        assert found == {isin: sums["trades"] for isin, sums in expected.items()}


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
    table, _ = bar_partials(trades, 60_000, 1_000, 1_000)
    [row] = to_spark(table).to_pylist()
    assert (row["value"], row["unfit"], row["volume"]) == (None, 1, 198)
