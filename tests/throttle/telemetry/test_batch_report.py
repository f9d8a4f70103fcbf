"""Where a batch's time went, left in Redis for whoever asks."""

import socket
import time

import pytest
import redis

from tests.conftest import PATIENCE, eventually
from throttle.telemetry.batch_report import StageWriter

pytestmark = pytest.mark.redis
KEY = "tt:stages:job"


def test_the_newest_batch_replaces_all_of_the_one_before(
    client: redis.Redis, redis_url: str
) -> None:
    """A stage that a batch did not have is not left over."""
    with StageWriter(redis_url, KEY) as stages:
        stages.write({"batch": "1", "plan_ms": "5.0"})
        eventually(lambda: client.hgetall(KEY) == {b"batch": b"1", b"plan_ms": b"5.0"})
        stages.write({"batch": "2"})
        eventually(lambda: client.hgetall(KEY) == {b"batch": b"2"})


def test_nothing_fails_and_nobody_waits_when_redis_hangs_up_or_is_silent() -> None:
    """It is asked again for the next batch; writing returns at once, the end soon."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        port = server.getsockname()[1]
        with StageWriter(f"redis://127.0.0.1:{port}/0", KEY) as stages:
            stages.write({"batch": "1"})
            asked, _ = server.accept()
            asked.close()
            stages.write({"batch": "2"})
            silent, _ = server.accept()
            began = time.monotonic()
            stages.write({"batch": "3"})
            written_s = time.monotonic() - began
        ended_s = time.monotonic() - began
        silent.close()
    # A silent server is waited for a second, by the thread alone.
    assert written_s < 0.5 * PATIENCE
    assert ended_s < 5 * PATIENCE
