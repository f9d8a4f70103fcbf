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

from tests.conftest import eventually, free_port, skip_or_fail
from tests.e2e.crash import PUBLISH
from tests.e2e.feeds import Feed
from tests.e2e.proxy import When
from tests.e2e.rig import PATIENCE_S, create_rig
from tests.e2e.steady import EMPTIED, Steady

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.spark,
    pytest.mark.redis,
    pytest.mark.timeout(400),
]

W = 500


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steady]:
    """One job for the whole file."""
    with create_rig(tmp_path_factory.mktemp("faults"), W) as rig:
        steady = Steady(rig)
        yield steady
        steady.close()


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


@pytest.mark.parametrize("seconds", [10, 30])
def test_a_job_that_was_asleep_goes_on(steady: Steady, seconds: int) -> None:
    """Never lost, exactly once: SIGSTOP of all its processes, beyond its lease."""
    assert steady.job is not None
    steady.job.suspend()
    try:
        steady.check_silent(seconds)
    finally:
        steady.job.wake()
    steady.check_goes_on()


def test_redis_killed_and_restarted_with_its_data(steady: Steady) -> None:
    """Resumable: SIGKILL of the server; the job waits and goes on where it was."""
    steady.rig.kill_server()
    time.sleep(4)
    steady.rig.start_server()
    steady.check_goes_on()
    steady.check_said_away()
    assert not steady.said(EMPTIED)


def test_redis_unreachable_for_half_a_minute(steady: Steady) -> None:
    """Never lost: the network is cut, trades go on; they are worked off later."""
    steady.rig.proxy.cut()
    try:
        steady.check_silent(30)
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
        assert second.process.wait(timeout=60) == 1, second.log()
    [sentence] = [
        line for line in second.log().splitlines() if line.startswith("tickthrottle: ")
    ]
    assert "another throttle job named" in sentence
    assert "throttle" in sentence
    steady.check_goes_on()


def test_a_full_disk_ends_the_job_and_costs_nothing(tmp_path: Path) -> None:
    """Never lost: no room for checkpoints ends the job; with room it goes on."""
    with create_rig(tmp_path / "rig", W) as rig, _small_disk(rig.state), rig.feed():
        with rig.job() as job:
            job.wait_for('"event": "ready"', PATIENCE_S)
            rig.wait_for_offset(4, 30, job)
            _fill(rig.state / "filler")
            eventually(lambda: job.process.poll() is not None, 30)
            assert job.process.returncode == 1, job.log()
            assert job.log().splitlines()[-1].startswith("tickthrottle: "), job.log()
        (rig.state / "filler").unlink()
        with rig.job() as job:
            rig.wait_until_live(job)
            rig.check()


@contextmanager
def _small_disk(folder: Path) -> Iterator[None]:
    """Put a disk of 2 MB under a folder."""
    if os.geteuid() != 0:
        skip_or_fail("only root can mount a small disk")
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode != 0:
        skip_or_fail("no small disk can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def _fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(bytes(4_096))
