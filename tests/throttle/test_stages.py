"""Where a batch's time went, left in Redis for whoever asks."""

import pytest
import redis

from tests.conftest import eventually, free_port
from throttle.stages import StageLog

pytestmark = pytest.mark.redis
KEY = "tt:stages:job"


def test_the_newest_batch_replaces_all_of_the_one_before(
    client: redis.Redis, redis_url: str
) -> None:
    """A stage that a batch did not have is not left over."""
    with StageLog(redis_url, KEY) as stages:
        stages.write({"batch": "1", "plan_ms": "5.0"})
        eventually(lambda: client.hgetall(KEY) == {b"batch": b"1", b"plan_ms": b"5.0"})
        stages.write({"batch": "2"})
        eventually(lambda: client.hgetall(KEY) == {b"batch": b"2"})


def test_nothing_fails_and_nobody_waits_when_redis_is_away() -> None:
    """Writing returns at once, and so does the end."""
    with StageLog(f"redis://127.0.0.1:{free_port()}/0", KEY) as stages:
        stages.write({"batch": "1"})
