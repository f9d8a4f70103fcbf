"""One job that lives through many faults, so that Spark starts once for all of them."""

import time
from collections.abc import Callable
from contextlib import ExitStack

from tests.conftest import eventually
from tests.e2e.books import Checked
from tests.e2e.processes import Running
from tests.e2e.rig import KEYS, PATIENCE_S, Rig
from tests.published import read_snapshots

AWAY, BACK = '"event": "redis is away"', '"event": "redis is back"'
EMPTIED = '"event": "the stream was emptied or rolled back, or its server was'


class Steady:
    """A job that is running and live at the beginning of every test."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self._stack = ExitStack()
        self._mark = 0
        self.job: Running | None = None

    def __enter__(self) -> "Steady":
        """Return itself; the job is started by ``begin`` or ``start``."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the job."""
        self.close()

    def start(self) -> None:
        """Start the job; it is not ready then."""
        self.close()
        self.job = self._stack.enter_context(self.rig.job())
        self._mark = 0

    def begin(self) -> None:
        """Make sure that the job is live; a failed test may have ended it."""
        if self.job is None or self.job.process.poll() is not None:
            self.start()
        assert self.job is not None
        self.job.wait_for('"event": "ready"', PATIENCE_S)
        self.rig.wait_until_live(self.job)
        self._mark = len(self.job.log())

    def close(self) -> None:
        """End the job."""
        self._stack.close()

    def wait_for_windows(self, windows: int) -> None:
        """Wait until ``windows`` more windows are published."""
        self.rig.wait_for_offset(self.rig.offset() + windows, 30, self.job)

    def said(self, words: str) -> bool:
        """Tell whether the job has logged these words since the test began."""
        return words in self.new_lines()

    def wait_until_said(self, words: str, within_s: float = 20) -> None:
        """Wait until the job has logged these words; fail if it ends before."""

        def check() -> bool:
            self.check_alive()
            return self.said(words)

        eventually(check, within_s)

    def check_said_away(self) -> None:
        """Fail unless the job said that Redis was away, and that it is back."""
        assert self.said(AWAY), self.new_lines()
        self.wait_until_said(BACK)

    def new_lines(self) -> str:
        """Return what the job has logged since the test began."""
        assert self.job is not None
        return self.job.log()[self._mark :]

    def check_alive(self) -> None:
        """Fail if the job has ended."""
        assert self.job is not None
        assert self.job.process.poll() is None, self.job.log()[-3_000:]

    def check_silent(self, seconds: float) -> None:
        """Fail if anything is published, or the job ends, within ``seconds``."""
        # What was on its way when the fault began may still arrive.
        time.sleep(1)
        offset = self.rig.offset()
        time.sleep(seconds - 1)
        assert self.rig.offset() == offset
        self.check_alive()

    def check_goes_on(self) -> Checked:
        """Wait until the same process is live again; compare everything."""
        offset = self.rig.offset()
        self.rig.wait_until_live(self.job)
        self.rig.wait_for_offset(offset + 2, job=self.job)
        return self.rig.check()

    def check_new_epoch(self, fault: Callable[[], None]) -> None:
        """Do what empties the server; check that a new numbering began."""
        epoch = self.rig.client.hget(KEYS.meta, "epoch")
        fault()
        self.wait_until_said(EMPTIED, 40)
        eventually(
            lambda: self.rig.client.hget(KEYS.meta, "epoch") not in (None, epoch), 20
        )
        self.rig.wait_for_offset(1, 20, self.job)

    def lags_ms(self, windows: int) -> list[float]:
        """Return how long after its end each of the newest windows was published."""
        newest = read_snapshots(self.rig.client)[-windows:]
        return sorted(s.published_us / 1_000 - s.window for s in newest)
