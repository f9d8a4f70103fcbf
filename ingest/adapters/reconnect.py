"""When to connect again, and how often something may be done. Pure."""

from collections import deque
from random import Random

from ingest.adapters.adapter import Limit

FIRST_WAIT_S = 0.5
LONGEST_WAIT_S = 30.0
LIMITED_WAIT_S = 10.0
"""First wait when the exchange wants fewer connections."""

LONGEST_LIMITED_WAIT_S = 300.0
GOOD_AFTER_S = 30.0
"""A connection that lasted so long was a good one: waits begin anew."""


class Backoff:
    """How long to wait after each connection that ended, longer each time.

    A wait is between half of its length and all of it: many feeds whose exchange was
    away for a moment do not come back in the same one.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._failures = 0

    def wait_s(
        self, lasted_s: float, *, is_rate_limit: bool = False, asked_s: float = 0.0
    ) -> float:
        """Return the wait after a connection that was open for ``lasted_s``.

        At least ``asked_s``, as far as that is within the longest wait.
        """
        if lasted_s >= GOOD_AFTER_S:
            self._failures = 0
        first_s = LIMITED_WAIT_S if is_rate_limit else FIRST_WAIT_S
        longest_s = LONGEST_LIMITED_WAIT_S if is_rate_limit else LONGEST_WAIT_S
        full_s = min(longest_s, first_s * float(2 ** min(self._failures, 16)))
        self._failures += 1
        wait_s = full_s * self._random.uniform(0.5, 1.0)
        return max(wait_s, min(asked_s, longest_s))


class Allowance:
    """How often something may be done: never more than a limit within its time."""

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._turns: deque[float] = deque(maxlen=limit.count)

    def take_turn(self, now_s: float) -> float:
        """Return how long to wait before doing it once more; 0: now.

        The turn is taken: whoever asks next comes after it.
        """
        at_s = now_s
        if len(self._turns) == self._limit.count:
            at_s = max(now_s, self._turns[0] + self._limit.within_s)
        self._turns.append(at_s)
        return at_s - now_s
