"""What is compared is the same, and what it costs is counted."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from throttle.describe.comparison import groupings, recorded, to_table, ways
from throttle.settings import ThrottleSettings
from throttle.spark.warmup import WARMUP_INSTRUMENTS, WARMUP_TRADES

pytestmark = pytest.mark.spark

SETTINGS = ThrottleSettings()
WINDOWS = 3
COMBINED = WINDOWS * WARMUP_INSTRUMENTS
TRADES = WINDOWS * WARMUP_TRADES


def test_every_way_returns_the_same_rows(spark: SparkSession) -> None:
    """A comparison of different results would say nothing."""
    for ways_by_name in groupings(
        spark.newSession(), SETTINGS, recorded(SETTINGS, WINDOWS)
    ).values():
        tables = [way().toArrow() for way in ways_by_name.values()]
        rows = [sorted(map(repr, table.to_pylist())) for table in tables]
        assert len(rows[0]) == COMBINED
        assert all(others == rows[0] for others in rows)


def test_rows_exchanged_and_kept_in_a_state_are_counted(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Without a combine every trade is exchanged; broadcast, none; of panes, few."""
    measured = list(ways(spark.newSession(), SETTINGS, tmp_path, WINDOWS, runs=1))
    early, grouped, late, broadcast, merged, panes, spans = (
        way.figures for way in measured
    )
    assert early.exchanged <= grouped.exchanged < late.exchanged == TRADES
    assert broadcast.exchanged == 0
    assert merged.exchanged == COMBINED + WARMUP_INSTRUMENTS
    # A pane is in thirty spans of five minutes, which begin every ten seconds.
    assert spans.state_updates == 30 * panes.state_updates > 0
    assert spans.state_bytes > panes.state_bytes
    assert len(to_table(measured, WINDOWS).splitlines()) == 1 + 3 + len(measured)
