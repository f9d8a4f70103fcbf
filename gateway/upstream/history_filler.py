"""The historian: fills the history from the stream, and back from the window log."""

import asyncio
from collections import deque
from typing import Protocol

import structlog
from redis.exceptions import RedisError

from gateway.stream.board import Position
from gateway.upstream.instrument_history import InstrumentHistory
from throttle.contract.snapshot import WindowSnapshot

FAN_OUT_S = 0.2
"""A window is taken in when clients have it: nobody waits for a chart."""

AT_ONCE = 8
"""Windows that are read from the log in one go."""

RETRY_S = 1.0

log = structlog.get_logger()


class PastWindows(Protocol):
    """Windows that were published before; see ``WindowLog``."""

    async def between(self, first: int, last: int) -> list[WindowSnapshot]: ...

    async def until(self, last: int, limit: int) -> list[WindowSnapshot]: ...


class HistoryFiller:
    """Follows the feed; ``run`` does the work until it is cancelled.

    A message that stands for several windows, after an outage, is replaced by those
    windows if the log still holds them.
    """

    def __init__(self, history: InstrumentHistory, window_log: PastWindows) -> None:
        self._history = history
        self._window_log = window_log
        self._has_work = asyncio.Event()
        self._coming: deque[WindowSnapshot] = deque()
        self._epoch: str | None = None
        # The windows up to this offset are still to be looked for in the log.
        self._missing_until = 0
        self._restarts = 0

    def follow(self, snapshot: WindowSnapshot) -> None:
        """Note the next window of the stream."""
        self._coming.append(snapshot)
        self._has_work.set()

    def restart(self, position: Position) -> None:
        """Forget everything: the stream goes on behind ``position``."""
        self._restarts += 1
        self._coming.clear()
        self._history.clear()
        self._epoch = position.epoch
        self._missing_until = position.offset
        self._has_work.set()

    async def run(self) -> None:
        """Take in what comes, and look back to what was before."""
        while True:
            await self._has_work.wait()
            self._has_work.clear()
            await asyncio.sleep(FAN_OUT_S)
            try:
                await self._take_in()
                while self._missing_until:
                    await self._look_back()
                    await self._take_in()
            except (RedisError, OSError) as error:
                log.warning("the window log cannot be read", error=str(error))
                await asyncio.sleep(RETRY_S)
                self._has_work.set()

    async def _take_in(self) -> None:
        while self._coming:
            snapshot, restarts = self._coming[0], self._restarts
            parts = await self._parts(snapshot)
            if self._restarts != restarts:
                continue
            self._coming.popleft()
            for part in parts:
                self._check(part, self._history.append(part))
                await asyncio.sleep(0)

    async def _parts(self, snapshot: WindowSnapshot) -> list[WindowSnapshot]:
        """Return the windows that a message stands for, or else the message itself."""
        if snapshot.windows == 1:
            return [snapshot]
        offsets = range(snapshot.offset - snapshot.windows + 1, snapshot.offset + 1)
        try:
            parts = await self._window_log.between(offsets[0], offsets[-1])
        except ValueError:
            return [snapshot]
        is_whole = [part.offset for part in parts] == list(offsets)
        is_same = all(part.epoch == snapshot.epoch for part in parts)
        return parts if is_whole and is_same else [snapshot]

    async def _look_back(self) -> None:
        restarts, epoch = self._restarts, self._epoch
        try:
            snapshots = await self._window_log.until(self._missing_until, AT_ONCE)
        except ValueError as error:
            log.warning("the window log is not understood", error=str(error))
            snapshots = []
        is_end = len(snapshots) < AT_ONCE
        for snapshot in snapshots:
            if self._restarts != restarts:
                return
            if snapshot.epoch != epoch:
                is_end = True
                break
            unreadable = self._history.prepend(snapshot)
            if unreadable is None:
                is_end = True
                break
            self._check(snapshot, unreadable)
            self._missing_until = snapshot.offset - 1
            await asyncio.sleep(0)
        if is_end and self._restarts == restarts:
            self._missing_until = 0

    def _check(self, snapshot: WindowSnapshot, unreadable: int) -> None:
        if unreadable:
            log.warning(
                "rows without a price or size are not in the history",
                offset=snapshot.offset,
                rows=unreadable,
            )
