"""Sends a client's frames through an ``await``: for any ASGI server, and for SSE.

One task per connection. What cannot be had this way: room before a frame is built
(one frame may grow old while it waits), and a word to a peer that has stopped reading.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from gateway.client import Client, Ending

Write = Callable[[bytes], Awaitable[None]]
Close = Callable[[Ending], Awaitable[None]]


class AwaitingSender:
    """Sends with ``write``, which returns when there is room for more."""

    def __init__(self, write: Write, close: Close, patience_s: float) -> None:
        self._write = write
        self._close = close
        self._patience_s = patience_s
        self._awake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing_since_s: float | None = None

    def wake(self) -> None:
        """Have ``run`` look for frames."""
        self._awake.set()

    def is_stuck(self, now_s: float) -> bool:
        """Say whether one write has lasted for as long as it may."""
        since_s = self._writing_since_s
        return since_s is not None and now_s - since_s >= self._patience_s

    def end(self, ending: Ending) -> None:
        """Have ``run`` close the connection; if it is stuck, cancel it."""
        self._awake.set()
        if self._task is not None and self.is_stuck(time.monotonic()):
            self._task.cancel()

    async def run(self, client: Client) -> None:
        """Send until the client's stream is over and closed."""
        self._task = asyncio.current_task()
        while True:
            frame = client.next_frame(time.time_ns() // 1_000)
            if frame is not None:
                self._writing_since_s = time.monotonic()
                await self._write(frame)
                self._writing_since_s = None
                client.sent(1, time.monotonic())
            elif client.ending is not None:
                await self._close(client.ending)
                return
            else:
                await self._awake.wait()
                self._awake.clear()
