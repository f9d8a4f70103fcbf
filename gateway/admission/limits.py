"""How many may connect, and how fast a client may send. Pure.

Time is an argument.
"""

from collections import Counter
from math import ceil


class TokenBucket:
    """Allows ``burst`` messages at once and ``rate_per_s`` a second after that.

    ``now_s`` may come from any clock that does not go back.
    """

    __slots__ = ("_burst", "_filled_s", "_rate_per_s", "_tokens")

    def __init__(self, rate_per_s: float, burst: int, now_s: float) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._tokens = float(burst)
        self._filled_s = now_s

    def take(self, now_s: float) -> int:
        """Spend one token and return 0, or return the milliseconds until there is one.

        A refused message spends nothing, so a client that waits as told gets through.
        """
        wait_ms = self.wait_ms(now_s)
        if not wait_ms:
            self._tokens -= 1
        return wait_ms

    def wait_ms(self, now_s: float) -> int:
        """Return the milliseconds until there is a token, 0 if there is one."""
        gained = (now_s - self._filled_s) * self._rate_per_s
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_s = now_s
        return max(0, ceil((1 - self._tokens) / self._rate_per_s * 1_000))


MOST_ADDRESSES = 10_000
"""Of this many addresses a budget is kept."""


class Budgets:
    """A bucket for each address; those not seen for longest are dropped."""

    def __init__(
        self, rate_per_s: float, burst: int, most: int = MOST_ADDRESSES
    ) -> None:
        self._rate_per_s = rate_per_s
        self._burst = burst
        self._most = most
        # In the order in which they were seen last.
        self._buckets: dict[str, TokenBucket] = {}

    def take(self, address: str, now_s: float) -> int:
        """Spend one token of the address's bucket, as ``TokenBucket.take`` does."""
        bucket = self._buckets.pop(address, None)
        if bucket is None:
            bucket = TokenBucket(self._rate_per_s, self._burst, now_s)
        self._buckets[address] = bucket
        if len(self._buckets) > self._most:
            del self._buckets[next(iter(self._buckets))]
        return bucket.take(now_s)

    def is_spent(self, address: str, now_s: float) -> bool:
        """Say whether an address has no token left."""
        bucket = self._buckets.get(address)
        return bucket is not None and bucket.wait_ms(now_s) > 0


class Admission:
    """Counts the open connections, of the process and of each address."""

    def __init__(self, most: int, most_per_address: int) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._by_address: Counter[str] = Counter()
        self._count = 0

    def enter(self, address: str) -> str | None:
        """Count a connection in and return None, or return why it may not come in."""
        if self._count >= self._most:
            return f"this gateway has {self._most} connections, it takes no more"
        if self._by_address[address] >= self._most_per_address:
            return f"{self._most_per_address} connections an address are allowed"
        self._count += 1
        self._by_address[address] += 1
        return None

    def leave(self, address: str) -> None:
        """Count a connection out that was counted in."""
        self._count -= 1
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
