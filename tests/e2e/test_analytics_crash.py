"""The analytics job killed for real; a hundred kills are in bench/analytics_crash.py.

The named points without a process to kill are in
tests/throttle/analytics/test_analytics_job.py.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random

import pytest
import redis

from tests.e2e.analytics_crash import ISINS, AnalyticsCrasher
from tests.gateway.bar_listener import check_clients, listening
from tests.gateway.servers import running_gateway
from tests.redis_users import documented_users, url_of

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
    """A job with no more rights than it needs, on a feed that goes on."""
    with documented_users(client):
        user_url = url_of("tt-analytics", redis_url)
        with AnalyticsCrasher(client, user_url, tmp_path) as crasher:
            yield crasher


def test_a_killed_job_misses_and_doubles_nothing(
    crasher: AnalyticsCrasher, redis_url: str
) -> None:
    """Every bar is as the oracle says, in Redis, over REST and at a client.

    The books balance.
    """
    chance = Random(5)
    with (
        running_gateway(url_of("tt-gateway", redis_url)) as gateway,
        listening(gateway, ISINS) as listener,
    ):
        compare = partial(check_clients, gateway, listener)
        for point in ("state_written", "at_random"):
            assert crasher.crash_once(point, chance, compare) >= 15
