"""Which rows of a batch Redis is going to find stale, as far as one job can know."""

from typing import cast

import redis

from throttle.contract.trade_order import VERSION_CHARS
from throttle.window.batch import Batch
from throttle.window.group_rows import Place

_ASKED_AT_ONCE = 1_000


class ShownVersions:
    """Remembers the newest version of every instrument that was in a batch.

    Redis decides; where other jobs publish the same instruments, this may be behind.
    """

    def __init__(self, client: redis.Redis, last: str) -> None:
        """Begin with nothing; ``last`` is the hash of last values."""
        self._client = client
        self._last = last
        self._newest: dict[str, bytes] = {}
        self._in_batch: dict[str, bytes] = {}

    def stale(self, batch: Batch) -> frozenset[Place]:
        """Return the rows that are no news. Raises redis.RedisError."""
        self._ask_for(batch)
        shown, newest = self._newest, dict[str, bytes]()
        stale = []
        for window in batch.windows:
            for _, (isin, version, _, _) in window.rows.values():
                # As ``is_newer`` says it; a call for each would take twice as long.
                if version > (newest.get(isin) or shown[isin]):
                    newest[isin] = version
                else:
                    stale.append((window.end_ms, isin))
        self._in_batch = newest
        return frozenset(stale)

    def learn(self) -> None:
        """Take in that the batch that ``stale`` looked at was published."""
        self._newest |= self._in_batch

    def _ask_for(self, batch: Batch) -> None:
        """Look up the instruments that were in no batch yet."""
        isins = {isin for window in batch.windows for isin in window.rows}
        unknown = sorted(isins - self._newest.keys())
        for begin in range(0, len(unknown), _ASKED_AT_ONCE):
            some = unknown[begin : begin + _ASKED_AT_ONCE]
            values = cast("list[bytes | None]", self._client.hmget(self._last, some))
            for isin, value in zip(some, values, strict=True):
                self._newest[isin] = (value or b"")[:VERSION_CHARS]
