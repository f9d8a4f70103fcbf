"""Which workers of a gateway stand still: they beat, and the supervisor looks. Pure.

Time is counted in the supervisor's own looks. Where the whole machine stands still, no
worker misses more than a look.
"""

from gateway.admission.shared_figures import Cells, Seat

BEAT_S = 1.0
"""How often a worker beats, and how often the supervisor looks."""

FROZEN_LOOKS = 8
"""A worker that has not beaten for so many looks is frozen."""

FIRST_LOOKS = 60
"""So many may pass before the first beat: the worker starts."""

LOST_LOOKS = 15
"""A loss is shown until another process has beaten for so many looks."""


class Pulse:
    """What the supervisor sees of one worker, whose place is ``seat``."""

    def __init__(self, seat: Seat) -> None:
        self._beats, self._lost_ms, self._worker = seat.beats, seat.lost_ms, seat.worker
        self.begin()

    def begin(self) -> None:
        """Expect the beats of another process."""
        self._seen = self._first = self._beats[self._worker]
        self._silent = self._steady = 0

    def look(self) -> bool:
        """Look once; say whether the worker has turned out to be frozen just now.

        To be called every ``BEAT_S``, and not more often.
        """
        beats = self._beats[self._worker]
        if beats != self._seen:
            self._seen, self._silent = beats, 0
            self._steady += 1
            if self._steady >= LOST_LOOKS:
                self._lost_ms[self._worker] = 0
            return False
        self._silent += 1
        has_begun = beats != self._first
        return self._silent == (FROZEN_LOOKS if has_begun else FIRST_LOOKS)

    def lose(self, now_ms: int) -> None:
        """Note that the worker was lost at a time of day, or has been before."""
        self._lost_ms[self._worker] = self._lost_ms[self._worker] or now_ms


def beat(seat: Seat) -> None:
    """Say that this worker's event loop goes on."""
    seat.beats[seat.worker] += 1


def lost_workers_ms(lost_ms: Cells) -> dict[int, int]:
    """Return since when workers have been lost, by their numbers."""
    return {n: lost_ms[n] for n in range(len(lost_ms)) if lost_ms[n]}
