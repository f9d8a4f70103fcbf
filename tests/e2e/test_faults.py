"""The job through every outage we could think of: it stays, and it stays exact."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from tests.conftest import PATIENCE, eventually, skip_or_fail
from tests.e2e.crash import PUBLISH
from tests.e2e.feeds import Feed
from tests.e2e.proxy import When
from tests.e2e.rig import create_rig
from tests.e2e.steady import Steady
from tests.ports import free_port

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steady]:
    """One job for the whole file; it has a small disk to itself."""
    with (
        create_rig(tmp_path_factory.mktemp("faults"), W) as rig,
        _small_disk(rig.state),
        Steady(rig) as steady,
    ):
        yield steady


@pytest.fixture
def feed(shared: Steady) -> Iterator[Feed]:
    """A feed that goes on as well as it can."""
    shared.rig.start_server()
    with shared.rig.feed() as feed:
        yield feed


@pytest.fixture
def steady(shared: Steady, feed: Feed) -> Steady:
    """The job, live, with a feed."""
    shared.begin()
    return shared


def test_a_job_that_was_asleep_goes_on(steady: Steady) -> None:
    """Never lost, exactly once: SIGSTOP of all its processes for 12 s.

    That is beyond its lease, and beyond all it waits for Redis: twice 5 s.
    """
    assert steady.job is not None
    steady.job.suspend()
    try:
        steady.check_silent(12)
    finally:
        steady.job.wake()
    steady.check_goes_on()


def test_redis_killed_and_restarted_with_its_data(steady: Steady) -> None:
    """Never lost: SIGKILL of the server; the job waits and goes on in a new epoch.

    Nobody can tell whether somebody published what this server has lost.
    """

    def restart() -> None:
        steady.rig.kill_server()
        time.sleep(4)
        steady.rig.start_server()

    steady.check_new_epoch(restart)
    steady.check_goes_on()
    steady.check_said_away()


def test_redis_unreachable_for_longer_than_anything_waits(steady: Steady) -> None:
    """Never lost: the network is cut for 12 s, trades go on, and are worked off later.

    No deadline of the job is as long: it waits for Redis twice 5 s.
    """
    steady.rig.proxy.cut()
    try:
        steady.check_silent(12)
    finally:
        steady.rig.proxy.restore()
    steady.check_goes_on()
    steady.check_said_away()


def test_redis_in_a_black_hole(steady: Steady) -> None:
    """Never lost: connections stay, no byte comes; the job notices and goes on."""
    steady.rig.proxy.pause()
    try:
        steady.check_silent(15)
    finally:
        steady.rig.proxy.resume()
    steady.check_goes_on()
    steady.check_said_away()


@pytest.mark.parametrize("when", ["before", "half", "replied"])
def test_a_line_that_breaks_in_a_publish(steady: Steady, when: When) -> None:
    """Exactly once: published or not, the job cannot know, and asks again."""
    assert steady.rig.proxy.act_on(PUBLISH, when).wait(20)
    steady.check_goes_on()


def test_redis_out_of_memory(steady: Steady) -> None:
    """Never lost: writes are refused; the job waits until there is room."""
    client = steady.rig.client
    client.config_set("maxmemory-policy", "noeviction")
    client.config_set("maxmemory", "1mb")
    try:
        steady.check_silent(4)
    finally:
        client.config_set("maxmemory", "0")
    steady.check_goes_on()
    steady.check_said_away()


def test_redis_turned_into_a_replica(steady: Steady) -> None:
    """Never lost: reads go well, writes are refused, as after a failover."""
    client = steady.rig.client
    client.replicaof("127.0.0.1", free_port())
    try:
        steady.check_silent(4)
    finally:
        client.replicaof("NO", "ONE")
    steady.check_goes_on()
    steady.check_said_away()


def test_redis_busy_with_a_slow_script(steady: Steady) -> None:
    """Never lost: the server answers BUSY to everybody; the job waits."""
    steady.rig.client.config_set("busy-reply-threshold", 100)
    busy = "local from = os.clock() while os.clock() - from < 8 do end"
    with redis.Redis.from_url(steady.rig.url, socket_timeout=60) as other:
        other.eval(busy, 0)
    steady.rig.client.config_set("busy-reply-threshold", 5_000)
    steady.check_alive()
    steady.check_goes_on()
    steady.check_said_away()


def test_everything_in_redis_deleted(steady: Steady) -> None:
    """Never backwards, accounted: FLUSHALL begins a new epoch and new books."""
    steady.check_new_epoch(steady.rig.client.flushall)
    steady.check_goes_on()


def test_redis_restarted_empty(steady: Steady) -> None:
    """Never backwards, accounted: the server lost its data, as after FLUSHALL."""
    rig = steady.rig

    def restart_empty() -> None:
        rig.kill_server()
        shutil.rmtree(rig.folder / "data" / "appendonlydir")
        rig.start_server()

    steady.check_new_epoch(restart_empty)
    steady.check_goes_on()


def test_redis_restarted_with_older_data(steady: Steady) -> None:
    """Resumable: what came after a backup is gone; a new epoch tells gateways."""
    rig = steady.rig
    data, backup = rig.folder / "data" / "appendonlydir", rig.folder / "backup"
    shutil.copytree(data, backup)
    rig.wait_for_offset(rig.offset() + 6, 20, steady.job)

    def roll_back() -> None:
        rig.kill_server()
        shutil.rmtree(data)
        backup.rename(data)
        rig.start_server()

    steady.check_new_epoch(roll_back)
    steady.check_goes_on()


def test_a_second_job_of_the_same_name_is_turned_away(steady: Steady) -> None:
    """Exactly once: the second says who is there, and ends."""
    with steady.rig.job() as second:
        assert second.process.wait(timeout=60 * PATIENCE) == 3, second.log()
    [sentence] = [
        line for line in second.log().splitlines() if line.startswith("tickthrottle: ")
    ]
    assert "another throttle job named" in sentence
    assert "throttle" in sentence
    steady.check_goes_on()


def test_a_full_disk_ends_the_job_and_costs_nothing(steady: Steady) -> None:
    """Never lost: no room for checkpoints ends the job; with room it goes on."""
    state, job = steady.rig.state, steady.job
    if not state.is_mount():
        skip_or_fail("no small disk can be mounted here: that needs root")
    assert job is not None

    def has_ended() -> bool:
        # Again and again: Spark removes what is old.
        _fill(state / "filler")
        return job.process.poll() is not None

    try:
        eventually(has_ended, 30)
    finally:
        (state / "filler").unlink()
    assert job.process.returncode == 3, job.log()
    assert job.log().splitlines()[-1].startswith("tickthrottle: "), job.log()
    steady.begin()
    steady.check_goes_on()


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Put a disk of 64 MB under a folder, where that is allowed."""
    command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
    if (
        os.geteuid() != 0
        or subprocess.run(command, capture_output=True, check=False).returncode != 0
    ):
        yield
        return
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(path: Path) -> None:
    with path.open("ab", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
