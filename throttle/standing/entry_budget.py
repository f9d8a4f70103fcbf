"""How many entries of the log may be read backwards, in a minute and at once."""

import time

MOST_ENTRIES = 500_000
"""So many entries of the log are read in a minute: some five seconds."""

LEAST_ENTRIES = 30_000
"""So many may be read for a batch, whatever was read for others: 0.3 s."""


class EntryBudget:
    """What is left of a minute's entries; it fills up as time goes by."""

    def __init__(self) -> None:
        self._left = float(MOST_ENTRIES)
        self._filled_s = time.monotonic()

    def take(self) -> int:
        """Return how many entries may be read now."""
        now_s = time.monotonic()
        more = (now_s - self._filled_s) / 60 * MOST_ENTRIES
        self._left = min(self._left + more, MOST_ENTRIES)
        self._filled_s = now_s
        return max(int(self._left), LEAST_ENTRIES)

    def leave(self, left: float) -> None:
        """Note what is left of those that were taken."""
        self._left = min(self._left, left)
