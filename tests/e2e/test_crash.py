"""The job killed for real: a few of the points of a batch, and in its start.

Every point is in tests/throttle/testing/test_driver.py, hundreds of kills are in
`run_crashes`.
"""

from collections.abc import Iterator
from random import Random

import pytest

from tests.conftest import eventually
from tests.e2e.crash import Crash, Crasher
from tests.e2e.rig import KEYS, create_rig

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


STAGES = KEYS.stages("throttle")


@pytest.fixture(scope="module")
def crasher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crasher]:
    """A job on a tape that goes on, one for the whole file."""
    with (
        create_rig(tmp_path_factory.mktemp("crash"), window_ms=500) as rig,
        Crasher(rig) as crasher,
    ):
        rig.is_taking_back = True
        yield crasher


@pytest.mark.parametrize("point", ["during_read", "during_publish"])
def test_a_job_killed_at_this_point_misses_and_doubles_nothing(
    crasher: Crasher, point: str
) -> None:
    """Exactly once, never lost: every window is as the oracle says, once."""
    check(crasher.crash_once(point, Random(1)))


def test_a_job_killed_again_in_its_start_misses_and_doubles_nothing(
    crasher: Crasher,
) -> None:
    """Exactly once, never lost: killed after a publish, then before any other work."""
    check(crasher.crash_once("after_publish", Random(0), is_killed_again=True))


@pytest.mark.parametrize("point", ["before_publish", "after_publish"])
@pytest.mark.parametrize("is_taking_back", [True, False])
def test_a_worker_killed_as_it_publishes_misses_and_doubles_nothing(
    crasher: Crasher, point: str, is_taking_back: bool
) -> None:
    """Its task is run again, and finds its window published, or publishes it.

    Windows whose trades are taken back are the driver's. The job lives on: the next
    test goes on with it.
    """
    if crasher.rig.is_taking_back != is_taking_back:
        crasher.rig.is_taking_back = is_taking_back
        crasher.renew()
    check(crasher.crash_once(f"worker_{point}", Random(1)))


@pytest.mark.parametrize("point", ["during_publish", "after_publish"])
def test_a_job_killed_as_its_task_publishes_misses_and_doubles_nothing(
    crasher: Crasher, point: str
) -> None:
    """The next job goes on from what it finds, and its tasks publish, too."""
    crasher.rig.is_taking_back = False
    crasher.renew()
    check(crasher.crash_once(point, Random(1)))
    eventually(lambda: is_by_task(crasher.rig.client.hgetall(STAGES)), 30)


def is_by_task(stages: dict[bytes, bytes]) -> bool:
    """Tell whether a batch was published without being handed to the driver."""
    return b"publish_ms" in stages and b"collect_ms" not in stages


def check(crash: Crash) -> None:
    """Check that a crash left enough to compare."""
    assert crash.checked.windows > 2
    assert crash.checked.trades > 0
    assert crash.groups is not None
    assert crash.groups > 0
