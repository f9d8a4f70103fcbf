"""What a feed has heard of trading statuses and not told yet; threads share it."""

import threading
from collections import deque
from dataclasses import replace

from ingest.statuses.trading_status import TradingStatus

MOST_UNTOLD = 10_000
"""While Redis is away, so many wait; beyond it the oldest are left out."""

_SECOND_US = 1_000_000


class StatusNews:
    """One thread notes, one takes. Bounded by ``MOST_UNTOLD``, and by the slots.

    An exchange may say with each trade what it said with the one before: news is what
    differs from the last that was said of its slot, and the first. Those of a slot that
    came within a second keep their order: clocks of seconds give them one time.
    """

    def __init__(self) -> None:
        self.left_out = 0
        self._said: dict[str, TradingStatus] = {}
        self._untold: deque[TradingStatus] = deque()
        self._changed = threading.Condition()

    def note(self, status: TradingStatus) -> None:
        """Take in what a frame says."""
        before = self._said.get(status.slot)
        if before is not None:
            if replace(status, time_us=before.time_us) == before:
                return
            if before.time_us - _SECOND_US < status.time_us <= before.time_us:
                status = replace(status, time_us=before.time_us + 1)
        self._said[status.slot] = status
        with self._changed:
            if len(self._untold) == MOST_UNTOLD:
                self._untold.popleft()
                self.left_out += 1
            self._untold.append(status)
            self._changed.notify()

    def wait(self, within_s: float) -> TradingStatus | None:
        """Return the oldest that is not told, None if none comes; ``told`` ends it."""
        with self._changed:
            self._changed.wait_for(lambda: self._untold, within_s)
            return self._untold[0] if self._untold else None

    def told(self, status: TradingStatus) -> None:
        """Have a status be told, unless it was left out meanwhile."""
        with self._changed:
            if self._untold and self._untold[0] is status:
                self._untold.popleft()
