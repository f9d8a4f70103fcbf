"""What processes use, by name, whatever becomes of them."""

import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from cli.local.process_tree import Named
from loadtest.system.usage import Usage, usage_of
from tests.conftest import eventually

BUSY = "while True: pass"
IDLE = "import time; time.sleep(600)"


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def start(started: list[subprocess.Popen[bytes]], code: str, name: str) -> Named:
    """Start Python code under a name; return once the code runs."""
    command = [sys.executable, "-c", f"print(flush=True)\n{code}"]
    started.append(subprocess.Popen(command, stdout=subprocess.PIPE))
    output = started[-1].stdout
    assert output is not None
    assert output.readline()
    return Named(name, psutil.Process(started[-1].pid))


def test_a_busy_process_and_an_idle_one_are_told_apart(
    started: list[subprocess.Popen[bytes]],
) -> None:
    """CPU by name, in shares of a core; memory of both; the machine in cores."""
    busy, idle = start(started, BUSY, "busy"), start(started, IDLE, "idle")
    usage = Usage(lambda: [busy], lambda: [idle])
    usage.sample(0.0, 0.0)
    eventually(lambda: sum(busy.process.cpu_times()[:2]) > 0.3)
    usage.sample(1_000.0, 1.0)
    tested, ours = usage.processes([0.0, 1_000.0, 2_000.0, 9_000.0])
    assert (tested.name, tested.is_ours, tested.pid) == ("busy", False, busy[1].pid)
    assert (ours.name, ours.is_ours) == ("idle", True)
    assert tested.cpu[0] is None
    assert tested.cpu[1] is not None
    assert tested.cpu[1] > 0.2
    assert tested.cpu[1:3] == [tested.cpu[1]] * 2
    assert tested.cpu[3] is None
    assert ours.cpu[1] is not None
    assert ours.cpu[1] < tested.cpu[1]
    assert all(mib is not None and 1 < mib < 500 for mib in tested.memory_mib)
    cores = usage.machine([1_000.0])[0]
    assert cores is not None
    assert cores > 0


def test_processes_of_one_name_are_added_up(
    started: list[subprocess.Popen[bytes]],
) -> None:
    workers = [start(started, BUSY, "worker") for _ in range(2)]
    usage = Usage(lambda: workers, list)
    usage.sample(0.0, 0.0)
    eventually(
        lambda: all(sum(p.cpu_times()[:2]) > 0.2 for _, p in workers), within_s=20
    )
    before = [sum(p.cpu_times()[:2]) for _, p in workers]
    usage.sample(1_000.0, 1.0)
    [found] = usage.processes([1_000.0])
    assert found.cpu[0] is not None
    assert found.cpu[0] >= sum(before) - 0.4
    assert found.pid in {p.pid for _, p in workers}


def test_one_that_ends_is_followed_by_the_next_of_its_name(
    started: list[subprocess.Popen[bytes]],
) -> None:
    """A part that is started again goes on in the same series, under its new pid."""
    first = start(started, IDLE, "gateway")
    there = [first]
    usage = Usage(lambda: there, list)
    usage.sample(0.0, 0.0)
    usage.sample(1_000.0, 1.0)
    first.process.kill()
    started[0].wait()
    usage.sample(2_000.0, 2.0)
    there[:] = [start(started, IDLE, "gateway")]
    usage.sample(3_000.0, 3.0)
    usage.sample(4_000.0, 4.0)
    [found] = usage.processes([0.0, 1_000.0, 4_000.0])
    assert found.cpu[0] is None
    assert found.cpu[1] is not None
    assert found.cpu[2] is not None
    assert found.pid == there[0].process.pid


def test_where_pss_is_dear_memory_goes_on_from_it_by_rss(
    started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process does not seem to grow because it is measured in another way."""
    monkeypatch.setattr("loadtest.system.usage.PSS_WITHIN_S", -1)
    idle = start(started, IDLE, "valkey")
    usage = Usage(lambda: [idle], list)
    for at_s in (0.0, 5.0, 10.0):
        usage.sample(at_s * 1_000, at_s)
    [found] = usage.processes([0.0, 10_000.0])
    pss = idle.process.memory_full_info().pss / 2**20
    assert found.memory_mib == pytest.approx([pss] * 2, rel=0.2)
    assert pss < idle.process.memory_info().rss / 2**20


def test_it_samples_by_itself() -> None:
    """In a thread, from the start to the end of the block."""
    with usage_of(list, lambda: [Named("load", psutil.Process())]) as usage:
        eventually(lambda: len(usage.processes([0.0])) == 1)
    assert [one.name for one in usage.processes([])] == ["load"]
