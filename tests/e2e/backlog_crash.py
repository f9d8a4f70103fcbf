"""Kill the job while it works off a backlog, start it again, compare everything."""

import time
from random import Random

from ingest.sources.simulator import Simulator
from ingest.tradelog.contract import partition_of
from ingest.tradelog.redis_log_reader import open_log
from tests.conftest import PATIENCE
from tests.e2e.books import Checked, read_account
from tests.e2e.crash import REQUESTS, RUNNING
from tests.e2e.feeds import take_back
from tests.e2e.processes import Running
from tests.e2e.rig import KEYS, Rig
from tickthrottle_client.log_v1 import FIELD, stream_key

POINTS = ("before_publish", "during_publish", "after_publish", "before_commit")

RATE = 30_000
SECONDS = 10
"""With how many trades a second a backlog was recorded, and for how long."""

TAKEN_BACK_OFTEN = 0.005
"""Some sixty in 300,000 trades: of more, a job does not look back to all in a minute.
"""

PARTITIONS = 4
SETTINGS = {
    "TICKTHROTTLE_PARTITIONS": str(PARTITIONS),
    # Many batches: there are many moments to be killed at.
    "TICKTHROTTLE_MAX_WINDOWS_PER_BATCH": "1",
}
AT_ONCE = 5_000
"""Trades that are put into the log in one go."""

LAST_WINDOWS = 6
"""With no more windows than this left, a new backlog is filled in."""


class BacklogCrasher:
    """A job that is killed again and again before it has caught up."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._entries = self._ends_ms = 0

    def crash_once(self, point: str, chance: Random) -> Checked:
        """Start the job, kill it at a point of some batch, check everything.

        Fails at the first difference from the oracle, or if the backlog was over.
        """
        if self._windows_left() <= LAST_WINDOWS:
            self._renew()
        with self._rig.job(**SETTINGS) as job:
            batches = chance.randrange(1, 4)
            self._rig.wait_for_offset(self._rig.offset() + batches, job=job)
            self._strike(job, point, chance)
        assert self._windows_left() > 0, "the backlog was worked off before"
        return self._rig.check()

    def finish(self) -> Checked:
        """Have the backlog worked off to its end; check everything."""
        # With one window a batch it comes nearer hardly faster than windows end.
        with self._rig.job(TICKTHROTTLE_PARTITIONS=str(PARTITIONS)) as job:
            self._rig.wait_until_live(job)
        checked = self._rig.check()
        account = read_account(self._rig.client)
        assert account is not None
        assert sum(p.read for p in account.ledger.partitions) == self._entries
        return checked

    def _strike(self, job: Running, point: str, chance: Random) -> None:
        if point == RUNNING:
            time.sleep(chance.uniform(0, 0.2))
        else:
            done = self._rig.proxy.act_on(*REQUESTS[point], job.kill_now)
            assert done.wait(20 * PATIENCE), f"{point} was not reached"
        job.kill()

    def _windows_left(self) -> int:
        account = read_account(self._rig.client)
        if account is None:
            return 0
        return (self._ends_ms - account.cut.end_ms) // self._rig.window_ms

    def _renew(self) -> None:
        if self._ends_ms:
            self.finish()
        self._rig.proxy.disarm()
        self._rig.client.flushall()
        self._entries = 0
        open_log(self._rig.client, KEYS.namespace, PARTITIONS)
        start_us = (self._rig.clock_ms() - SECONDS * 1_000) * 1_000
        pipe = self._rig.client.pipeline(transaction=False)
        events = Simulator(rate=RATE, seconds=SECONDS).events(start_us)
        if self._rig.is_taking_back:
            events = take_back(events, Random(1), TAKEN_BACK_OFTEN)
        for event in events:
            key = stream_key(KEYS.namespace, partition_of(event.key, PARTITIONS))
            stamp_ms = (start_us + event.due_us) // 1_000
            pipe.xadd(key, {FIELD: event.payload}, id=f"{stamp_ms}-*")
            if len(pipe) == AT_ONCE:
                self._entries += len(pipe.execute())
        self._entries += len(pipe.execute())
        self._ends_ms = stamp_ms
