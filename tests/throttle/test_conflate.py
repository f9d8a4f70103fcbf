"""The transform, in a real Spark."""

import random
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from throttle.conflate import create_conflate
from throttle.rows import SCHEMA

pytestmark = pytest.mark.spark
W = 2_000


def row(
    append_ms: int, key: str, time: int, seq: int, position: int, **more: Any
) -> tuple[Any, ...]:
    """Make one input row."""
    stamp = datetime.fromtimestamp(append_ms / 1000, UTC)
    payload = more.get("payload", b"%d" % position)
    reason = more.get("reason")
    return (stamp, key, time, seq, position, 0, payload, reason, reason)


def conflated(spark: SparkSession, rows: list[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """Return {(window, key, time, seq, position, trades)} of the transform."""
    frame = spark.createDataFrame(rows, SCHEMA)
    result = set()
    for found in create_conflate(W)(frame).toArrow().to_pylist():
        end_ms = round(found["window"]["end"].timestamp() * 1000)
        latest = found["latest"]
        assert latest["payload"] == b"%d" % latest["position"]
        version = (latest["time"], latest["seq"], latest["position"])
        result.add((end_ms, found["key"], *version, found["trades"]))
    return result


def test_a_window_ends_where_the_next_begins(spark: SparkSession) -> None:
    """The boundary itself belongs to the later window; windows are named by ends."""
    rows = [row(3_999, "A", 1, 1, 1), row(4_000, "A", 2, 2, 2)]
    assert conflated(spark, rows) == {
        (4_000, "A", 1, 1, 1, 1),
        (6_000, "A", 2, 2, 2, 1),
    }


def test_the_latest_is_decided_by_time_then_seq_then_position(
    spark: SparkSession,
) -> None:
    """Arrival order decides nothing but a tie."""
    rows = [
        row(3_000, "T", 9, 1, 1),
        row(3_001, "T", 8, 9, 2),
        row(3_000, "S", 5, 7, 1),
        row(3_001, "S", 5, 6, 2),
        row(3_000, "P", 5, 5, 1),
        row(3_001, "P", 5, 5, 2),
    ]
    assert conflated(spark, rows) == {
        (4_000, "T", 9, 1, 1, 2),
        (4_000, "S", 5, 7, 1, 2),
        (4_000, "P", 5, 5, 2, 2),
    }


def test_a_refused_trade_stays_a_row_of_its_own(spark: SparkSession) -> None:
    """Reason and bytes come out as they went in."""
    frame = spark.createDataFrame(
        [row(3_000, "!0:7", 0, 0, 7, payload=b"\xff", reason="not_json")], SCHEMA
    )
    [found] = create_conflate(W)(frame).toArrow().to_pylist()
    latest = found["latest"]
    assert (latest["payload"], latest["reason"]) == (b"\xff", "not_json")


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
        )
        for position in range(10_000)
    ]
    expected: dict[tuple[int, str], list[Any]] = {}
    for stamp, key, time, seq, position, *_ in rows:
        end = (round(stamp.timestamp() * 1000) // W + 1) * W
        best = expected.setdefault((end, key), [(-1, -1, -1), 0])
        best[0] = max(best[0], (time, seq, position))
        best[1] += 1
    assert conflated(spark, rows) == {
        (end, key, *version, n) for (end, key), (version, n) in expected.items()
    }
