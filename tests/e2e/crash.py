"""Kill the job at an exact point of a batch, start it again, compare everything."""

import json
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import redis

from tests.conftest import PATIENCE, eventually
from tests.e2e.books import Checked
from tests.e2e.feeds import Feed
from tests.e2e.groups import change_table, check_groups
from tests.e2e.processes import Running
from tests.e2e.proxy import When
from tests.e2e.rig import KEYS, Rig
from tests.published import read_snapshots, sums_of_rows
from throttle.contract.cut import Cut
from throttle.contract.snapshot import WindowSnapshot
from throttle.window.open_batch import BatchPlan

# Of all scripts the publish alone is told the channel.
PUBLISH = rb'\nEVALSHA\r\n.*"channel":"tt:updates"'
# The request of a batch at which the proxy kills the job.
REQUESTS: dict[str, tuple[bytes, When]] = {
    # The question where the log stands, at any step of an open batch or at its end.
    "while_open": (rb"\nXREVRANGE\r\n\$\d+\r\ntt:log:", "before"),
    # Reading begins behind a position, the question above does not.
    "during_read": (rb"\nXRANGE\r\n\$\d+\r\ntt:log:\d+\r\n\$\d+\r\n\(", "before"),
    "before_publish": (PUBLISH, "before"),
    "during_publish": (PUBLISH, "half"),
    "after_publish": (PUBLISH, "replied"),
    "before_commit": (PUBLISH, "passed"),
}
# A worker alone that is killed there: its task is run again.
WORKER = "worker_"
WORKER_POINTS = tuple(f"{WORKER}{point}" for point in REQUESTS)
POINTS = ("after_offset_log", *REQUESTS, *WORKER_POINTS)
# Those that a log in Kafka has, too: its own requests do not pass the proxy.
POINTS_OF_ANY_LOG = tuple(
    point
    for point in POINTS
    if point.removeprefix(WORKER) not in ("while_open", "during_read")
)
RUNNING, STARTING = "random moment", "random moment of the start"
READ = REQUESTS["during_read"][0]

# What must be true of the batch at which the job was killed at a point.
_PUBLISHED = {
    "during_read": False,
    "before_publish": False,
    "during_publish": False,
    "after_publish": True,
    "before_commit": True,
}


@dataclass(frozen=True, slots=True)
class Crash:
    """One kill and what came after."""

    point: str
    down_s: float
    """From the kill to the first window that was published after it."""
    caught_up_s: float
    """From the kill until every window that had ended was published."""
    checked: Checked
    groups: int | None
    """Groups of markets and sectors compared; None if the log is not in Redis."""


class Crasher:
    """A job that is killed again and again while its feed goes on."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._stack = ExitStack()
        self._feed: Feed | None = None
        self._channel: redis.client.PubSub | None = None
        self._messages: list[WindowSnapshot] = []
        self._is_sound = False
        self.job: Running | None = None
        self.starts = 0

    def __enter__(self) -> "Crasher":
        """Return itself; the first crash begins with an empty server."""
        return self

    def __exit__(self, *_: object) -> None:
        """End job and feed."""
        self._end()

    def renew(self) -> None:
        """Empty the server, so that comparing all of it stays quick."""
        self._is_sound = False
        self._end()
        self.rig.proxy.disarm()
        self.rig.client.flushall()
        self.rig.renew_log()
        self._feed = self.rig.feed()
        self._channel = self.rig.client.pubsub(ignore_subscribe_messages=True)
        self._channel.subscribe(KEYS.updates)
        self._messages = []
        self.start()
        self._wait_until_live()
        self._is_sound = True

    def start(self) -> Running:
        """Start the job; it is not ready then."""
        self._stack.close()
        self.job = self._stack.enter_context(self.rig.job())
        self.starts += 1
        return self.job

    def crash_once(
        self, point: str, chance: Random, *, is_killed_again: bool = False
    ) -> Crash:
        """Kill the job at a point, start it again, let it catch up, check everything.

        With ``is_killed_again``, and with STARTING, the next job is killed in its
        start. Fails at the first difference from the oracle.
        """
        if not self._is_sound:
            self.renew()
        self._is_sound = False
        # The job joins this table or the one before: its cut says which.
        change_table(self.rig.client, self.starts)
        if point in WORKER_POINTS:
            return self._kill_worker(point)
        self._strike(point, chance)
        killed = time.monotonic()
        if is_killed_again or point == STARTING:
            started = self.start()
            time.sleep(chance.uniform(0, 8))
            started.kill()
        change_table(self.rig.client, -self.starts)
        offset = self.rig.offset()
        self.start()
        return self._check_after(point, offset, killed)

    def _kill_worker(self, point: str) -> Crash:
        """Kill the worker of a task; the job itself lives on."""
        job = self.job
        assert job is not None
        pattern, when = REQUESTS[point.removeprefix(WORKER)]
        killed: list[int] = []
        done = self.rig.proxy.act_on(
            pattern, when, lambda: killed.extend(job.kill_workers())
        )
        assert done.wait(20 * PATIENCE), f"{point} was not reached"
        assert killed, point
        return self._check_after(point, self.rig.offset(), time.monotonic())

    def _check_after(self, point: str, offset: int, killed: float) -> Crash:
        """Wait until the job has published on from an offset; check everything."""
        job = self.job
        self.rig.wait_for_offset(offset + 1, job=job)
        down_s = time.monotonic() - killed
        self._wait_until_live()
        caught_up_s = time.monotonic() - killed
        checked = self.rig.check()
        eventually(lambda: self._drain_channel() >= checked.windows, 5)
        self._check_messages()
        groups = check_groups(self.rig.client, self.rig.window_ms)
        self._is_sound = True
        return Crash(point, down_s, caught_up_s, checked, groups)

    def _strike(self, point: str, chance: Random) -> None:
        """Kill the job at the point and check that it was there."""
        job = self.job
        assert job is not None
        if point in REQUESTS:
            pattern, when = REQUESTS[point]
            done = self.rig.proxy.act_on(pattern, when, job.kill_now)
            assert done.wait(20 * PATIENCE), (
                f"{point} was not reached:\n{job.log()[-2_000:]}"
            )
        elif point == "after_offset_log":
            self._wait_for_offset_file()
            job.kill_now()
        else:
            time.sleep(chance.uniform(0, 1.5))
        job.kill()
        if point in _PUBLISHED:
            assert self._is_published() is _PUBLISHED[point], point

    def _offset_files(self) -> Path:
        """Return the folder of the running job's offset log."""
        folders = self.rig.state.glob("checkpoints/*/*/offsets")
        return max(folders, key=lambda folder: folder.stat().st_mtime)

    def _wait_for_offset_file(self) -> None:
        folder = self._offset_files()
        known = _newest(folder)
        deadline = time.monotonic() + 20 * PATIENCE
        # Far tighter than eventually: a batch takes a tenth of a second.
        while _newest(folder) == known:
            assert time.monotonic() < deadline, f"no new file in {folder}"
            time.sleep(0.000_5)

    def _is_published(self) -> bool:
        """Tell whether the newest batch that Spark planned was published."""
        folder = self._offset_files()
        lines = (folder / str(_newest(folder))).read_text().splitlines()
        planned = BatchPlan.from_offset(json.loads(lines[-1]))
        stored = json.loads(self.rig.client.hget(KEYS.meta, "cut:throttle"))
        return Cut.from_offset(stored).end_ms >= planned.end_ms

    def _wait_until_live(self) -> None:
        self.rig.wait_until_live(self.job)
        # Two more, so that the next crash meets live windows too.
        self.rig.wait_for_offset(self.rig.offset() + 2, 30, self.job)

    def _drain_channel(self) -> int:
        """Check that messages cover each offset exactly once; return the newest."""
        assert self._channel is not None
        received = self._messages[-1].offset if self._messages else 0
        while message := self._channel.get_message(timeout=0):
            snapshot = WindowSnapshot.decode(message["data"])
            assert snapshot.offset - snapshot.windows == received
            received = snapshot.offset
            self._messages.append(snapshot)
        return received

    def _check_messages(self) -> None:
        """Check that the sums of all messages are those of the windows they are of."""
        windows = read_snapshots(self.rig.client)[: self._messages[-1].offset]
        assert sums_of_rows(self._messages) == sums_of_rows(windows)

    def _end(self) -> None:
        self._stack.close()
        if self._feed is not None:
            self._feed.stop()
            self._feed = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def _newest(folder: Path) -> int:
    names = [entry.name for entry in folder.iterdir()]
    return max((int(name) for name in names if name.isdigit()), default=-1)
