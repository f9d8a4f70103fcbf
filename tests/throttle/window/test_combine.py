"""Combining rows loses nothing, whatever was combined before."""

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.trade import Trade
from tests.examples import many
from tests.throttle.window.test_checked_rows import LATER_MS, TRADE, W, make_chunk
from throttle.contract.cut import Cut
from throttle.window.checked_rows import trade_rows
from throttle.window.combine import combine
from throttle.window.control_rows import cut_row, read_row
from throttle.window.row_schema import ARROW_SCHEMA, FIRST, FOLDED, SUM_PREFIX
from throttle.window.trade_sums import FOLDS, unpack

Groups = dict[tuple[int, str, int], tuple[dict[str, Any], tuple[int | None, ...]]]
"""By window, key and partition: the latest row, and what folds of all rows."""


def reference(entries: list[dict[str, Any]]) -> Groups:
    """Return the latest row of each group and what folds, in plain Python."""
    groups: Groups = {}
    for one in entries:
        window = round(one["append_time"].timestamp() * 1000) // W
        group = (window, one["key"], one["partition"])
        best, folded = groups.get(group, (one, (None,) * len(FOLDED)))
        order = ("time", "seq", "position")
        firsts = [tuple(row[name] for name in FIRST) for row in (best, one)]
        best = max(best, one, key=lambda row: [row[name] for name in order])
        # Of what is no trade all are None.
        best = best | dict(zip(FIRST, min(firsts, key=lambda f: f[:3]), strict=True))
        pairs = zip(FOLDED.items(), folded, strict=True)
        groups[group] = best, tuple(_add(how, n, one[c]) for (c, how), n in pairs)
    return groups


def _add(how: str, one: int | None, other: int | None) -> int | None:
    """Fold two values of a column; nothing in a column adds nothing."""
    if one is None or other is None:
        return other if one is None else one
    return {"sum": one + other, "max": max(one, other), "min": min(one, other)}[how]


def grouped(table: pa.Table) -> Groups:
    """Return a combined table as ``reference`` does; fails if a group came twice."""
    groups = reference(table.to_pylist())
    assert len(groups) == table.num_rows
    return groups


def without_sums(groups: Groups) -> Groups:
    """Forget what single rows stood for: the sums beside them say it."""
    none = dict.fromkeys(FOLDED, 0)
    return {group: ({**row, **none}, sums) for group, (row, sums) in groups.items()}


def make_table(entries: list[dict[str, Any]]) -> pa.Table:
    """Make a table of rows."""
    return pa.Table.from_pylist(entries, ARROW_SCHEMA)


def numbered(raw: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    """Give each row the position at which it stands, in its partition alone."""
    rows = []
    for position, (append_ms, key, partition, time, seq, trades) in enumerate(raw, 1):
        refused = key.startswith("!")
        first = time, seq, position, str(position)
        rows.append(
            {
                "append_time": datetime.fromtimestamp(append_ms / 1000, UTC),
                "key": f"!{position}" if refused else key,
                "partition": partition,
                "time": time,
                "seq": seq,
                "position": position,
                "trades": trades,
                **{
                    name: None if refused else n * trades
                    for n, name in enumerate(FOLDS)
                },
                **dict(zip(FIRST, (None,) * 4 if refused else first, strict=True)),
                "payload": b"%d" % position,
                "reason": "not_json" if refused else None,
                "error": f"error {position}" if refused else None,
            }
        )
    return rows


some_rows = st.lists(
    st.tuples(
        st.integers(0, 3 * W),
        st.sampled_from(["A", "B", "!"]),
        st.integers(0, 1),
        st.integers(0, 2) | st.integers(0, 2**62),
        st.integers(0, 2) | st.integers(0, 2**63 - 1),
        st.integers(1, 3),
    ),
    max_size=30,
).map(numbered)


@settings(max_examples=many(200))
@given(some_rows, st.data())
def test_rows_may_be_combined_in_any_parts_and_order(
    entries: list[dict[str, Any]], data: st.DataObject
) -> None:
    """However a batch is split among tasks and chunks, it says the same."""
    expected = without_sums(reference(entries))
    assert without_sums(grouped(combine(make_table(entries), W))) == expected
    shuffled = data.draw(st.permutations(entries))
    edges = st.lists(st.integers(0, len(entries)), max_size=4)
    at = [0, *sorted(data.draw(edges)), len(entries)]
    parts = [combine(make_table(shuffled[a:b]), W) for a, b in pairwise(at)]
    some = pa.concat_tables(data.draw(st.permutations(parts)))
    assert without_sums(grouped(combine(some, W))) == expected


def test_markers_are_not_combined_with_trades() -> None:
    """A task's counts and the cut come out as they went in."""
    end = Cut(8_000, (5, 2), (5, 2))
    markers = [cut_row(Cut(4_000, (0, 0), (0, 0)), end)]
    markers += [read_row(p, 7 + p, 3 * p, end) for p in range(2)]
    trades = trade_rows(make_chunk(TRADE.to_wire(), b"x"), 0, 0, LATER_MS, 5_000)
    together = combine(pa.concat_tables([*markers, trades]), W)
    apart = pa.concat_tables([*markers, combine(trades, W)])
    assert grouped(together) == grouped(apart)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=30), st.integers(0, 30))
def test_odd_sizes_take_a_row_an_instrument_however_many_trades(
    sizes: list[int], cut_at: int
) -> None:
    """Whatever is combined before, nothing is lost of what they come to."""
    texts = [f"{size}00000000000000000" for size in sizes]
    payloads = [
        Trade(TRADE.isin, TRADE.time_us, number, "1", text).to_wire()
        for number, text in enumerate(texts)
    ]
    table = trade_rows(make_chunk(*payloads), 3, 0, LATER_MS, 5_000)
    halves = [
        combine(table.slice(0, cut_at), W),
        table.slice(cut_at),
    ]
    combined = combine(pa.concat_tables(halves), W).to_pylist()
    [odd] = [row for row in combined if row["key"].startswith(SUM_PREFIX)]
    assert len(combined) == 2
    volume, value, high, low = unpack(odd["payload"])
    assert high == low == 10**36
    assert volume == value == sum(map(int, texts)) * 10**36
    # Of two pieces of the log the keys are different ones.
    assert odd["key"] == f"{SUM_PREFIX}{42 + len(sizes) - 1}:{TRADE.isin}"
