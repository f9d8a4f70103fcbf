"""A trade log whose clock is turned by hand: for the test driver."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ingest.redis_keys import OtherKeys
from ingest.tradelog.contract import Tail
from ingest.tradelog.redis_log_reader import RedisLogReader


class ManualClockLog(RedisLogReader):
    """A real log, but its server's time is what was last set.

    The time is a key beside the log, so that every process of a job sees the same.
    """

    def set_clock(self, clock_ms: int) -> None:
        """Set the time, milliseconds since 1970."""
        self._client.set(OtherKeys(self._namespace).clock, clock_ms)

    def clock_ms(self) -> int:
        """Return the time that was set, 0 before that."""
        value: Any = self._client.get(OtherKeys(self._namespace).clock)
        return int(value or 0)

    def tail(self, before_ms: int, partitions: Sequence[int] = ()) -> Tail:
        """Return the log's end before a boundary, and the time that was set."""
        clock_ms = self.clock_ms()
        return replace(super().tail(before_ms, partitions), clock_ms=clock_ms)
