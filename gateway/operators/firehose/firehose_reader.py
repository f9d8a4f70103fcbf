"""The firehose: every trade as it comes, for those few who look at it.

While nobody does, nothing is read. While somebody does, the log is looked at ten times
a second, once for all viewers, and a look is bounded whatever the log brings.
"""

import asyncio
import time

import structlog

from gateway.operators.firehose.firehose_sample import (
    MOST_KEPT_S,
    LogPiece,
    ReadBudget,
    RowAllowance,
    Sample,
    encode_row,
    thin,
)
from gateway.operators.firehose.log_end import LogEnd
from gateway.stream.counters import Counters
from gateway.upstream.trade_tail import LogUnread

LOOK_S = 0.1
"""How often the log is looked at; less often where a look takes more than half of it.
"""

AGAIN_S = 1.0
"""How soon it is looked at again where it could not be."""

log = structlog.get_logger()


class Viewer:
    """One who looks: what is to be sent to it, and whether it is over."""

    def __init__(self, rate: int) -> None:
        self.allowance = RowAllowance(rate)
        self.is_over = False
        self._sample = Sample()
        # Why the log cannot be looked at, and the same until the viewer was told.
        self._problem: str | None = None
        self._unsaid: str | None = None
        self._awake = asyncio.Event()

    def offer(self, piece: LogPiece, size: int, rows: list[bytes]) -> None:
        """Take in a look of which ``rows`` could be shown; ``size`` is its bytes."""
        self._problem = self._unsaid = None
        shown = thin(rows, self.allowance.rows)
        self.allowance.use(len(shown))
        unread = piece.appended - len(piece.entries)
        self._sample.add(piece.appended, unread, size, shown)
        self._sample.keep(max(1, round(self.allowance.rate * MOST_KEPT_S)))
        self._awake.set()

    def tell_problem(self, problem: str) -> None:
        """Say why the log cannot be looked at."""
        if problem != self._problem:
            self._problem = self._unsaid = problem
            self._awake.set()

    def end(self) -> None:
        """Have ``next`` return None from now on."""
        self.is_over = True
        self._awake.set()

    async def next(self) -> Sample | str | None:
        """Return what has come since the last time, or a problem; None at the end."""
        await self._awake.wait()
        self._awake.clear()
        if self.is_over:
            self._awake.set()
            return None
        if self._unsaid is not None:
            problem, self._unsaid = self._unsaid, None
            return problem
        sample, self._sample = self._sample, Sample()
        return sample


class Firehose:
    """Reads the log's end for its viewers, ``most_viewers`` of this process at most."""

    def __init__(self, end: LogEnd, counters: Counters, most_viewers: int) -> None:
        self._end = end
        self._counters = counters
        self._most_viewers = most_viewers
        self._viewers: set[Viewer] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def viewers(self) -> int:
        """How many look at the moment."""
        return len(self._viewers)

    def join(self, rate: int) -> Viewer | None:
        """Let somebody look, who is shown ``rate`` trades a second; None: too many."""
        if len(self._viewers) >= self._most_viewers:
            self._counters.firehose_viewers_refused += 1
            return None
        viewer = Viewer(rate)
        self._viewers.add(viewer)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="firehose")
        return viewer

    def leave(self, viewer: Viewer) -> None:
        """Let go who has looked; after the last one nothing is read."""
        self._viewers.discard(viewer)
        if not self._viewers and self._task is not None:
            self._task.cancel()
            self._task = None

    def expire(self, viewer: Viewer) -> None:
        """Send a viewer away whose token has expired."""
        self._counters.clients_token_expired += 1
        viewer.end()

    def count_sent(self, sample: Sample) -> None:
        """Count what a viewer is sent."""
        self._counters.firehose_trades_shown += len(sample.rows)
        self._counters.firehose_trades_left_out += sample.left_out

    async def _run(self) -> None:
        try:
            self._end.begin()
            budget = ReadBudget()
            looked_s = time.monotonic()
            while True:
                began_s = time.monotonic()
                is_seen = await self._look(budget, began_s - looked_s)
                looked_s = began_s
                took_s = time.monotonic() - began_s
                # Never more than half of the time.
                pause_s = max(took_s, LOOK_S - took_s) if is_seen else AGAIN_S
                await asyncio.sleep(pause_s)
        except Exception:
            log.exception("the firehose died, its viewers are sent away")
            for viewer in self._viewers:
                viewer.end()

    async def _look(self, budget: ReadBudget, elapsed_s: float) -> bool:
        try:
            piece = await self._end.look(budget.entries)
        except LogUnread as error:
            for viewer in self._viewers:
                viewer.tell_problem(str(error))
            return False
        budget.learn(piece)
        self._counters.firehose_entries_read += len(piece.entries)
        for viewer in self._viewers:
            viewer.allowance.grow(elapsed_s)
        most = max((viewer.allowance.rows for viewer in self._viewers), default=0)
        rows = [encode_row(entry) for entry in thin(piece.entries, most)]
        size = budget.bytes_of(piece)
        for viewer in self._viewers:
            viewer.offer(piece, size, rows)
        return True
