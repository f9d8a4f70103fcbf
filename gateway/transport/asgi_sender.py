"""Sends a client's frames through an ``await``: as server-sent events.

What cannot be had this way: room before a frame is built (one frame may grow old while
it waits), and a word to a peer that has stopped reading.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from gateway.stream.client import Client, Ending

Write = Callable[[bytes], Awaitable[None]]
Close = Callable[[Ending], Awaitable[None]]


class AwaitingSender:
    """The sender of one client, as a task: ``run``."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._awake = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._writing_since_s: float | None = None

    def wake(self) -> None:
        """Have ``run`` look for frames."""
        self._awake.set()

    is_ready = False
    """Frames are taken by ``run`` alone."""

    def write(self, frame: bytes) -> int:
        """Never called: it is never ready."""
        raise NotImplementedError

    @property
    def unsent_bytes(self) -> int:
        """0: what is on its way is not known here."""
        return 0

    def stuck_s(self, now_s: float) -> float:
        """Return for how long a write has waited for the peer to take something."""
        since_s = self._writing_since_s
        return 0.0 if since_s is None else max(0.0, now_s - since_s)

    def is_stuck(self, now_s: float) -> bool:
        """Say whether one write has lasted for as long as it may."""
        return self.stuck_s(now_s) >= self._patience_s

    def end(self, ending: Ending) -> None:
        """Have ``run`` close the connection; if it is stuck, cancel it."""
        self._awake.set()
        if self._task is not None and self.is_stuck(time.monotonic()):
            self._task.cancel()

    def progress(self) -> None:
        """Note that a write begins, or that the peer has taken a part of it."""
        self._writing_since_s = time.monotonic()

    async def run(self, client: Client, write: Write, close: Close) -> None:
        """Send until the client's stream is over, then close it.

        ``write`` returns when there is room for more.
        """
        self._task = asyncio.current_task()
        while True:
            frame = client.next_frame()
            if frame is not None:
                self.progress()
                await write(frame)
                self._writing_since_s = None
                client.sent(1, len(frame), time.monotonic())
            elif client.ending is not None:
                await close(client.ending)
                return
            else:
                await self._awake.wait()
                self._awake.clear()


async def until_one_ends(*jobs: Coroutine[Any, Any, None]) -> None:
    """Run jobs side by side; when one is over, end the others, raise what it raised."""
    tasks = [asyncio.create_task(job) for job in jobs]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()
