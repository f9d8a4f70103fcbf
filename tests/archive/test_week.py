"""A short week: what `run_week.py` does at length."""

from pathlib import Path

import pytest
import redis

from tests.archive.rig import settings_of
from tests.archive.run_week import Plan, differences, run_week

pytestmark = pytest.mark.redis


def test_a_week_is_stored_whole(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> None:
    """Nights, a day without a trade, a kill a day and a damaged file of the day."""
    plan = Plan(2, 60_000, 60_000, kills_a_day=1, damages_past=False, most_behind=400)
    root = tmp_path / "archive"
    week, state = run_week(client, settings_of(redis_url, root), plan, tmp_path / "log")
    assert differences(root, week) == []
    assert (week.kills, len(week.damaged), week.unasked) == (2, 1, [])
    assert sum(week.windows.values()) == 2 * 1_440
    assert state.damaged_segments == 1
