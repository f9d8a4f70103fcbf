"""Workers that die under their clients."""

from pathlib import Path

import pytest

from tests.e2e.run_worker_kills import kill_workers

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.redis,
    pytest.mark.slow,
    pytest.mark.timeout(300),
]


def test_clients_of_workers_that_are_killed_miss_nothing(
    redis_url: str, tmp_path: Path
) -> None:
    """They come back, are told what they missed, and no price goes back."""
    kills = kill_workers(redis_url, tmp_path, clients=500, seconds=20, every_s=6)
    assert kills.faults == []
    assert kills.restart_s
    assert kills.returns
