"""Statuses while each process that they pass through is killed once.

`run_status_crashes` kills as often as you like.
"""

from pathlib import Path
from random import Random

import pytest

from tests.e2e.rig import create_rig
from tests.e2e.status_crash import KILLED, StatusCrasher

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


def test_no_status_is_lost_or_overtaken_by_its_trades(tmp_path: Path) -> None:
    """Told once and in order, stored once, whatever is killed."""
    with (
        create_rig(tmp_path / "rig", window_ms=500, is_watched=False) as rig,
        StatusCrasher(rig) as crasher,
    ):
        for name in KILLED:
            crasher.crash_once(name, Random(1))
        assert crasher.finish() > len(KILLED)
        assert crasher.watcher.items > 0
