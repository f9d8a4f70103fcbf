"""A trade log whose clock is turned by hand: for tests (``testing.py``)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import redis

from ingest.log import LogInfo, Tail
from ingest.redis_log import RedisLogReader


class HandClockLog(RedisLogReader):
    """A real log, but its server's time is what was last set.

    The time is a key beside the log, so that every process of a job sees the same.
    """

    def __init__(
        self,
        client: redis.Redis,
        namespace: str,
        info: LogInfo,
        partitions: Sequence[int] = (),
    ) -> None:
        super().__init__(client, namespace, info, partitions)
        self._own = client
        self._clock_key = f"{namespace}:clock"

    def set_clock(self, clock_ms: int) -> None:
        """Set the time, milliseconds since 1970."""
        self._own.set(self._clock_key, clock_ms)

    def clock_ms(self) -> int:
        """Return the time that was set, 0 before that."""
        return int(cast("bytes | None", self._own.get(self._clock_key)) or 0)

    def tail(self, before_ms: int) -> Tail:
        """Return the log's end before a boundary, and the time that was set."""
        clock_ms = self.clock_ms()
        return replace(super().tail(before_ms), clock_ms=clock_ms)
