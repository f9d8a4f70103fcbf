"""How fast a client may send messages. Does no I/O; time is an argument."""

from math import ceil


class TokenBucket:
    """Allows ``burst`` messages at once and ``rate_per_s`` a second after that.

    ``now_s`` may come from any clock that does not go back.
    """

    def __init__(self, rate_per_s: float, burst: int, now_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._filled_s = now_s

    def take(self, now_s: float) -> int:
        """Spend one token and return 0, or return the milliseconds until there is one.

        A refused message spends nothing, so a client that waits as told gets through.
        """
        gained = (now_s - self._filled_s) * self._rate_per_s
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_s = now_s
        if self._tokens >= 1:
            self._tokens -= 1
            return 0
        return ceil((1 - self._tokens) / self._rate_per_s * 1_000)
