"""The transform, in a real Spark."""

import random
from contextlib import redirect_stdout
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from ingest.instrument_table.instrument_entry import InstrumentEntry
from ingest.instrument_table.known_instruments import Instruments
from ingest.sources.faults import break_trade
from ingest.trade import Trade
from tests.throttle.payloads import ISINS, NOW_MS, make_chunk
from throttle.contract.cut import Cut
from throttle.spark.sink import InstrumentFrame
from throttle.window.checked_rows import trade_rows
from throttle.window.combine import combine
from throttle.window.conflate import LATEST, create_conflate
from throttle.window.control_rows import cut_row, read_row
from throttle.window.instrument_columns import InstrumentColumns
from throttle.window.row_schema import ARROW_SCHEMA, READ_KEY

pytestmark = pytest.mark.spark
W = 2_000

Found = set[tuple[Any, ...]]


def row(
    append_ms: int, key: str, time: int, seq: int, position: int, **more: Any
) -> dict[str, Any]:
    """Make one input row."""
    return {
        "append_time": datetime.fromtimestamp(append_ms / 1000, UTC),
        "key": key,
        "partition": 0,
        "time": time,
        "seq": seq,
        "position": position,
        "trades": 1,
        "payload": b"%d" % position,
        "reason": None,
        "error": None,
        **more,
    }


def conflated(spark: SparkSession, table: pa.Table, is_live: bool = False) -> list[Any]:
    """Return the rows of the transform."""
    frame = spark.createDataFrame(table)
    return create_conflate(W)(frame, is_live).toArrow().to_pylist()


def found_in(spark: SparkSession, table: pa.Table) -> Found:
    """Return {(window, key, partition, time, seq, position, trades)}."""
    result = set()
    rows = conflated(spark, table)
    for found in rows:
        end_ms = round(found["window"]["end"].timestamp() * 1000)
        latest = found["latest"]
        assert latest["payload"] == b"%d" % latest["position"]
        version = (latest["time"], latest["seq"], latest["position"])
        group = (end_ms, found["key"], found["partition"])
        result.add((*group, *version, found["trades"]))
    assert len(result) == len(rows)
    return result


def make_table(*rows: dict[str, Any]) -> pa.Table:
    """Make the table of some rows."""
    return pa.Table.from_pylist(list(rows), ARROW_SCHEMA)


def test_any_mix_equals_plain_python(spark: SparkSession) -> None:
    """Ten thousand shuffled trades, the same answer as a dictionary gives."""
    source = random.Random(7)
    rows = [
        row(
            source.randrange(0, 20_000),
            f"K{source.randrange(40)}",
            source.randrange(50),
            source.randrange(3),
            position,
            partition=source.randrange(3),
        )
        for position in range(10_000)
    ]
    expected: dict[tuple[int, str, int], list[Any]] = {}
    for one in rows:
        end = (round(one["append_time"].timestamp() * 1000) // W + 1) * W
        group = (end, one["key"], one["partition"])
        best = expected.setdefault(group, [(-1, -1, -1), 0])
        best[0] = max(best[0], (one["time"], one["seq"], one["position"]))
        best[1] += 1
    assert found_in(spark, make_table(*rows)) == {
        (*group, *version, n) for group, (version, n) in expected.items()
    }


def made_up_batch(seed: int) -> pa.Table:
    """Make the rows of a batch: trades, refusals, what was read, the cut."""
    source = random.Random(seed)
    start = Cut(NOW_MS, (0, 0), (0, 0))
    end = Cut(NOW_MS + 3 * W, (9, 9), (9, 9))
    tables = [cut_row(start, end)]
    for partition in range(2):
        entries = [
            (source.randrange(NOW_MS - W, end.end_ms), _payload(source))
            for _ in range(1_500)
        ]
        entries.sort()
        chunk = make_chunk(entries)
        span = start.end_ms, end.end_ms
        tables.append(trade_rows(chunk, partition, *span, 5_000))
        tables.append(read_row(partition, len(chunk), 0, end))
    return pa.concat_tables(tables)


def _payload(source: random.Random) -> bytes:
    trade = Trade(
        source.choice(ISINS),
        NOW_MS * 1000 - source.randrange(300),
        source.randrange(3),
        f"{source.randrange(1, 9)}.{source.randrange(100):02}",
        "1",
    )
    payload = trade.to_wire()
    odd = source.random()
    if odd < 0.05:
        return break_trade(source, payload)
    return payload.replace(b",", b", ") if odd < 0.1 else payload


def by_spark(spark: SparkSession, table: pa.Table, is_live: bool) -> list[Any]:
    """Return every column of the conflated rows, in one order."""
    return sorted(
        (
            round(found["window"]["end"].timestamp() * 1000),
            found["key"],
            found["partition"],
            found["trades"],
            *found["latest"].values(),
        )
        for found in conflated(spark, table, is_live)
    )


def test_combining_early_changes_nothing(spark: SparkSession) -> None:
    """The same from all rows, from combined ones, and without Spark's grouping."""
    table = made_up_batch(seed=11)
    combined = combine(table, W)
    assert combined.num_rows < table.num_rows / 3
    alone = sorted(
        (
            (round(row["append_time"].timestamp() * 1000) // W + 1) * W,
            row["key"],
            row["partition"],
            row["trades"],
            *(row[name] for name in LATEST),
        )
        for row in combined.to_pylist()
    )
    assert sum(trades for _, key, _, trades, *_ in alone if key != READ_KEY) == 3_000
    assert by_spark(spark, table, is_live=False) == alone
    assert by_spark(spark, combined, is_live=False) == alone
    assert by_spark(spark, combined, is_live=True) == alone


@pytest.mark.parametrize("is_live", [True, False])
def test_each_row_gets_the_place_of_its_instrument(
    spark: SparkSession, is_live: bool
) -> None:
    """By a broadcast, as the plain join does; what is in no table stays, too."""
    instruments = InstrumentColumns(
        Instruments([InstrumentEntry(i) for i in ISINS[:3]], version=1)
    )
    keys = [*ISINS[:5], "!cut"]
    rows = [row(3_000, key, 1, 1, n, volume=n) for n, key in enumerate(keys)]
    frame = spark.createDataFrame(make_table(*rows))
    _, places = InstrumentFrame().of(spark, instruments.instruments)
    joined = create_conflate(W)(frame, is_live, places)
    found = {(r["key"], r["place"], r["volume"]) for r in joined.toArrow().to_pylist()}
    plain = instruments.join(make_table(*rows)).to_pylist()
    assert found == {(r["key"], r["place"], r["volume"]) for r in plain}
    assert len(found) == len(keys)
    plan = StringIO()
    with redirect_stdout(plan):
        joined.explain()
    assert "BroadcastHashJoin" in plan.getvalue()
