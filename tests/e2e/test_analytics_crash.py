"""The analytics job killed for real; a hundred kills are in bench/analytics_crash.py.

The named points without a process to kill are in
tests/throttle/analytics/test_analytics_job.py.
"""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
import redis

from tests.e2e.analytics_crash import AnalyticsCrasher

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


@pytest.fixture
def crasher(
    client: redis.Redis, redis_url: str, tmp_path: Path
) -> Iterator[AnalyticsCrasher]:
    """A job on a feed that goes on."""
    with AnalyticsCrasher(client, redis_url, tmp_path) as crasher:
        yield crasher


def test_a_killed_job_misses_and_doubles_nothing(crasher: AnalyticsCrasher) -> None:
    """Every bar and move is as the oracle says, and the books balance."""
    chance = Random(5)
    for point in ("state_written", "at_random"):
        assert crasher.crash_once(point, chance) >= 15
