"""How many may connect, and how fast a client may send. Pure.

Time is an argument.
"""

from math import ceil
from secrets import token_bytes

from gateway.admission.shared_figures import CELLS, Cells, Tally, allocate, cell_of


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

    def charge(self, tokens: float, now_s: float) -> None:
        """Spend tokens, also those that are not there."""
        self.wait_ms(now_s)
        self._tokens -= tokens

    def wait_ms(self, now_s: float) -> int:
        """Return the milliseconds until there is a token, 0 if there is one."""
        gained = (now_s - self._filled_s) * self._rate_per_s
        self._tokens = min(self._burst, self._tokens + gained)
        self._filled_s = now_s
        return max(0, ceil((1 - self._tokens) / self._rate_per_s * 1_000))


class Budgets:
    """A bucket for each address, kept as the moment at which it will be full.

    That is one number, so several workers may keep it together (the virtual scheduling
    algorithm of ITU-T I.371, annex A). Two addresses that share a cell share a bucket.
    A bucket may be overdrawn: nothing is allowed then until it has a token again.
    """

    def __init__(
        self,
        rate_per_s: float,
        burst: int,
        moments: Cells | None = None,
        key: bytes = b"",
    ) -> None:
        self._interval_s = 1 / rate_per_s
        self._burst_s = burst / rate_per_s
        self._full_s = allocate("d", CELLS) if moments is None else moments
        self._key = key or token_bytes(16)

    def take(self, address: str, now_s: float) -> int:
        """Spend one token of the address's bucket, as ``TokenBucket.take`` does."""
        cell = cell_of(self._key, address)
        wait_ms = self._wait_ms(cell, now_s)
        if not wait_ms:
            self._full_s[cell] = max(self._full_s[cell], now_s) + self._interval_s
        return wait_ms

    def charge(self, address: str, tokens: float, now_s: float) -> None:
        """Spend tokens of the address's bucket, also those that it does not have."""
        cell = cell_of(self._key, address)
        spent_s = tokens * self._interval_s
        self._full_s[cell] = max(self._full_s[cell], now_s) + spent_s

    def is_spent(self, address: str, now_s: float) -> bool:
        """Say whether an address has no token left."""
        return self.wait_ms(address, now_s) > 0

    def wait_ms(self, address: str, now_s: float, share: float = 1) -> int:
        """Return the milliseconds until an address has a token, 0 if it has one.

        Only a ``share`` of its bucket counts.
        """
        return self._wait_ms(cell_of(self._key, address), now_s, share)

    def spent_share(self, address: str, now_s: float) -> float:
        """Return which part of its bucket an address has spent; above 1: overdrawn."""
        full_s: float = self._full_s[cell_of(self._key, address)]
        return max(0.0, full_s - now_s) / self._burst_s

    def _wait_ms(self, cell: int, now_s: float, share: float = 1) -> int:
        ahead_s = max(0.0, self._full_s[cell] - now_s)
        wait_s: float = ahead_s + self._interval_s - self._burst_s * share
        # Without the last digits of a sum of seconds.
        return max(0, ceil(round(wait_s * 1_000, 6)))


class Admission:
    """Counts the open connections, of the gateway and of each address."""

    def __init__(
        self, most: int, most_per_address: int, tally: Tally | None = None
    ) -> None:
        self._most = most
        self._most_per_address = most_per_address
        self._tally = tally or Tally()

    @property
    def elsewhere(self) -> int:
        """How many connections other workers have."""
        return self._tally.total - self._tally.own

    def enter(self, address: str) -> str | None:
        """Count a connection in and return None, or return why it may not come in."""
        # First in, then asked: two workers at once let in one too few, never too many.
        self._tally.add(address, 1)
        refusal = None
        if self._tally.total > self._most:
            refusal = f"this gateway has {self._most} connections, it takes no more"
        elif self._tally.of(address) > self._most_per_address:
            refusal = f"{self._most_per_address} connections an address are allowed"
        if refusal is not None:
            self._tally.add(address, -1)
        return refusal

    def leave(self, address: str) -> None:
        """Count a connection out that was counted in."""
        self._tally.add(address, -1)
