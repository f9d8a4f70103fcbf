"""Moves are those of the oracle, however the log was cut into batches."""

from collections import Counter
from decimal import Decimal
from itertools import pairwise

import orjson
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.gateway.samples import make_isins
from tests.throttle.analytics.bar_oracle import Entry
from tests.throttle.analytics.moves import move_oracle
from tests.throttle.analytics.moves.move_oracle import MoveRules, found
from tests.throttle.analytics.partials.test_partial_bars import rows_of
from throttle.analytics.moves.move_rule import MoveRule
from throttle.analytics.moves.recent_trades import (
    SCHEMA,
    RecentTrades,
    SingleTrades,
    held_trades,
)
from throttle.analytics.partials.partial_bars import to_spark, trades_of
from throttle.contract.products.moves import Move

START_MS = 1_773_964_800_000
RULES = MoveRules(span_us=3_000_000)
BATCHES = 14
ISINS = make_isins(2)
ENTRIES = st.lists(
    st.builds(
        lambda isin, at_ms, delay_ms, seq, price, updates: Entry(
            START_MS + at_ms + delay_ms,
            ISINS.index(isin),
            0,
            isin,
            (START_MS + at_ms) * 1_000,
            seq,
            price,
            "1",
            updates,
        ),
        st.sampled_from(ISINS),
        # Few moments: many trades are within a span, some at the same time, and some
        # in the last millisecond before others are judged.
        st.integers(0, 64).map(lambda at: at // 2 * 500 - at % 2),
        st.sampled_from((-700, 0, 1, 400, 999, 1_000, 1_900, 2_900, 3_000, 9_000)),
        st.integers(0, 3),
        st.sampled_from(("98", "99.5", "100", "101.2", "103", "103.5", "106.09")),
        st.sampled_from((None, None, "last", "range,volume")),
    ),
    min_size=1,
    max_size=40,
).map(
    lambda entries: [
        entry._replace(position=number)
        for number, entry in enumerate(sorted(entries, key=lambda e: e.append_ms))
    ]
)


def read(entries: list[Entry]) -> tuple[pa.Table, Counter[int]]:
    """Return the trades of a piece of the log as a query gets them."""
    trades, _ = trades_of(rows_of(entries))
    rule = SingleTrades(RULES.batch_ms, RULES.close_after_ms)
    table, too_late = rule.partials(trades)
    names = ("isin", "open_time", "open_seq", "open_position", "open")
    table = rule.finish(to_spark(table))
    columns = dict(zip(SCHEMA.names, map(table.column, names), strict=True))
    return pa.table(columns), too_late


@given(ENTRIES, st.sets(st.integers(0, BATCHES - 2)), st.integers(0, BATCHES))
def test_moves_do_not_depend_on_batches(
    entries: list[Entry], joined: set[int], restarts: int
) -> None:
    """Each is told once; batches may be joined, and the job may start again."""
    expected, expected_too_late = move_oracle.moves(entries, RULES)
    rule = MoveRule(RULES.span_us, Decimal(3))
    recent = RecentTrades(rule, SCHEMA.empty_table())
    everything = SCHEMA.empty_table()
    moves: list[Move] = []
    too_late: Counter[int] = Counter()
    clocks = [START_MS - 2 * RULES.batch_ms] + [
        START_MS + n * RULES.batch_ms for n in range(BATCHES) if n not in joined
    ]
    for number, (since_ms, until_ms) in enumerate(pairwise(clocks)):
        ends = (since_ms + RULES.close_after_ms, until_ms + RULES.close_after_ms)
        piece = [e for e in entries if ends[0] <= e.append_ms < ends[1]]
        trades = SCHEMA.empty_table()
        if piece:
            trades, late = read(piece)
            too_late += late
        if number == restarts:
            # Spark's state has no fewer trades; it may have more.
            recent = RecentTrades(rule, everything)
        moves += recent.moves(trades, since_ms * 1_000, until_ms * 1_000)
        everything = pa.concat_tables([everything, trades])
    ends_us = [move.end_us for move in moves]
    assert ends_us == sorted(ends_us)
    assert sorted(map(found, moves)) == expected
    assert too_late == expected_too_late
    assert len(recent.kept) <= sum(
        e.time_us >= clocks[-1] * 1_000 - 2 * RULES.span_us for e in entries
    )


def test_two_spans_are_enough_and_one_is_not() -> None:
    """Whether the trade before has completed a move is a matter of its own span."""
    second = 1_000_000
    prices = {0: "100", 3: "103", 5: "106.09"}
    trades = pa.table(
        {
            "isin": ["I"] * 3,
            "time": [at * second for at in prices],
            "seq": [1, 2, 3],
            "position": [1, 2, 3],
            "price": [Decimal(price) for price in prices.values()],
        },
    )
    recent = RecentTrades(MoveRule(3 * second, Decimal(3)), SCHEMA.empty_table())
    [move] = recent.moves(trades, 0, 5 * second)
    assert (move.start_us, move.end_us) == (0, 3 * second)
    assert recent.moves(SCHEMA.empty_table(), 5 * second, 7 * second) == []
    assert len(recent.kept) == 2
    assert recent.moves(SCHEMA.empty_table(), 7 * second, 20 * second) == []
    assert len(recent.kept) == 0


def test_each_trade_is_compared_with_the_span_that_ends_with_it() -> None:
    """Of its own instrument, in whatever order trades come; the oldest comes first."""
    rows = [
        ("B", 3 * 1_000_000, 1, 9, Decimal(7)),
        ("A", 12 * 1_000_000, 3, 7, Decimal("103")),
        ("A", 1 * 1_000_000, 1, 5, Decimal("100")),
        ("A", 5 * 1_000_000, 2, 6, Decimal("102.5")),
    ]
    table = pa.Table.from_pylist(
        [dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA
    )
    shown = [
        orjson.loads(orjson.dumps(held.to_object()))
        for held in held_trades(table, {"move_span_ms": 10_000})
    ]
    assert [(row["isin"], row["time"] // 1_000_000, row["seq"]) for row in shown] == [
        *(("A", 1, 1), ("B", 3, 1), ("A", 5, 2), ("A", 12, 3))
    ]
    extremes = [(row["lowest"], row["price"], row["highest"]) for row in shown]
    assert extremes == [
        *((100, 100, 100), (7, 7, 7), (100, 102.5, 102.5), (102.5, 103, 103))
    ]
    assert [(row["rise"], row["fall"]) for row in shown] == [
        *((0, 0), (0, 0), (2.5, 0), (0.4878, 0))
    ]
