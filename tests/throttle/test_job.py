"""The job as a whole: what keeps it from starting. The rest is in ``e2e/``."""

import threading
from pathlib import Path

import pytest

from tests.ports import free_port
from throttle.job import ThrottleFailed, run_throttle
from throttle.settings import ThrottleSettings


def test_a_decoder_that_is_not_there_ends_the_job_at_once(tmp_path: Path) -> None:
    """In one sentence, before it waits for a server or starts Spark."""
    settings = ThrottleSettings(
        decoder="no_such_feed:decode",
        redis_url=f"redis://127.0.0.1:{free_port()}/0",
        state_dir=tmp_path,
    )
    with pytest.raises(ThrottleFailed) as caught:
        run_throttle(settings, threading.Event())
    assert str(caught.value) == (
        "decoder no_such_feed:decode: ModuleNotFoundError: "
        "No module named 'no_such_feed'"
    )
