"""An active job and a warm standby, and how long the second takes for the first."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise

from tests.conftest import eventually
from tests.e2e.books import read_account
from tests.e2e.processes import Running
from tests.e2e.rig import PATIENCE_S, Rig
from tests.published import read_snapshots

STANDBY, READY = '"event": "standby"', '"event": "ready"'


@dataclass(frozen=True, slots=True)
class Takeover:
    """What a takeover cost."""

    to_publish_s: float
    """From the fault to the first publish of the other job."""
    longest_gap_s: float
    """Longest time between two publishes around it."""


class Pair:
    """An active job; a standby is added, takes over, and is the active one then."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._stack = ExitStack()
        self.active = self._start()
        self.active.wait_for(READY, PATIENCE_S)
        rig.wait_until_live(self.active)

    def __enter__(self) -> "Pair":
        """Return itself, the active job is live already."""
        return self

    def __exit__(self, *_: object) -> None:
        """End every job."""
        self._stack.close()

    def add_standby(self) -> Running:
        """Start a standby and wait until it is warm and waits."""
        standby = self._start("--standby")
        standby.wait_for(STANDBY, PATIENCE_S)
        return standby

    def take_over(self, standby: Running, fault: Callable[[Running], None]) -> Takeover:
        """Do something to the active job; wait until the standby has published."""
        term, offset = self._term(), self._rig.offset()
        began = time.time()
        fault(self.active)
        eventually(lambda: self._term() > term, 30)
        account = read_account(self._rig.client)
        assert account is not None
        first = next(batch for batch in account.batches if batch.term > term)
        snapshots = read_snapshots(self._rig.client)[offset - 1 :]
        published_s = {one.offset: one.published_us / 1e6 for one in snapshots}
        gaps = [after - before for before, after in pairwise(published_s.values())]
        assert standby.process.poll() is None, standby.log()
        self.active = standby
        return Takeover(published_s[first.offset] - began, max(gaps))

    def _start(self, *options: str) -> Running:
        return self._stack.enter_context(self._rig.job(*options))

    def _term(self) -> int:
        """Return the term of the newest batch that was published."""
        account = read_account(self._rig.client)
        assert account is not None
        return account.batches[-1].term
