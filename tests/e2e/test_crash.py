"""The job killed at every point of a batch, and at random ones."""

from collections.abc import Iterator
from random import Random

import pytest

from tests.e2e.crash import POINTS, RUNNING, STARTING, Crasher
from tests.e2e.rig import create_rig

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crasher]:
    """A job on a tape that goes on, one for the whole file."""
    with (
        create_rig(tmp_path_factory.mktemp("crash"), window_ms=500) as rig,
        Crasher(rig) as crasher,
    ):
        yield crasher


@pytest.mark.parametrize("point", POINTS)
def test_a_job_killed_at_this_point_misses_and_doubles_nothing(
    crasher: Crasher, point: str
) -> None:
    """Exactly once, never lost: every window is as the oracle says, once."""
    crash = crasher.crash_once(point, Random(1))
    assert crash.checked.windows > 10
    assert crash.checked.trades > 1_000


@pytest.mark.parametrize("moment", [STARTING, RUNNING])
def test_a_job_killed_at_a_random_moment_misses_and_doubles_nothing(
    crasher: Crasher, moment: str
) -> None:
    """Exactly once, never lost: in the middle of its life, or of its start.

    ``bench/crash.py`` tries as many moments as you like.
    """
    crasher.crash_once(moment, Random(0))
