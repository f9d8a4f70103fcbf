"""A second job that goes on when the first cannot. How fast: `run_takeovers`."""

import json
import signal
from collections.abc import Iterator

import pytest

from tests.conftest import PATIENCE, eventually
from tests.e2e.processes import Running
from tests.e2e.rig import KEYS, Rig, create_rig
from tests.e2e.takeover import READY, STANDBY, Pair

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """Server and feed for the whole file."""
    folder = tmp_path_factory.mktemp("standby")
    with create_rig(folder, window_ms=500) as rig, rig.feed():
        yield rig


@pytest.fixture(scope="module")
def pair(rig: Rig) -> Iterator[Pair]:
    """An active job; who takes over from it is the active one of the next test."""
    with Pair(rig) as pair:
        yield pair


@pytest.fixture
def standby(rig: Rig, pair: Pair) -> Running:
    """A standby that waits, warm, while the active job publishes."""
    standby = pair.add_standby()
    rig.wait_until_live(pair.active)
    assert READY not in standby.log()
    return standby


def test_a_standby_takes_over_from_a_killed_job(
    rig: Rig, pair: Pair, standby: Running
) -> None:
    """Prompt, exactly once: SIGKILL of the driver, after which its JVM ends, too.

    The other goes on, no window is missing. From a job that was told to end one takes
    over in `test_upgrade.py`.
    """
    pair.take_over(standby, Running.kill_driver)
    assert _ready_event(standby)["took_over"] is True
    rig.wait_until_live(standby)
    rig.check()


def test_a_job_that_wakes_up_after_a_takeover_is_fenced(
    rig: Rig, pair: Pair, standby: Running
) -> None:
    """Exactly once: SIGSTOP, takeover, SIGCONT; the first one publishes nothing."""
    sleeper = pair.active
    pair.take_over(standby, Running.suspend)
    sleeper.wake()
    assert sleeper.process.wait(timeout=30 * PATIENCE) == 3, sleeper.log()
    last_line = sleeper.log().splitlines()[-1]
    assert last_line.startswith("tickthrottle: fenced: "), last_line
    rig.wait_until_live(standby)
    # Terms only grow: nothing of the sleeper came after the takeover.
    rig.check()


def test_a_standby_that_is_told_to_end_just_ends(
    rig: Rig, pair: Pair, standby: Running
) -> None:
    """Prompt: it leaves with exit code 0, and the active job as it was."""
    assert STANDBY in standby.log()
    term = rig.client.hget(KEYS.meta, "term:throttle")
    standby.process.send_signal(signal.SIGTERM)
    assert standby.process.wait(timeout=20 * PATIENCE) == 0, standby.log()
    rig.wait_for_offset(rig.offset() + 4, 20, pair.active)
    assert rig.client.hget(KEYS.meta, "term:throttle") == term
    rig.check()


def _ready_event(job: Running) -> dict[str, object]:
    def find() -> list[dict[str, object]]:
        lines = [line for line in job.log().splitlines() if line.startswith("{")]
        return [
            event for event in map(json.loads, lines) if event.get("event") == "ready"
        ]

    [event] = eventually(find, 10)
    return event
