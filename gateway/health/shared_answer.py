"""What costs something to find out, found out once for all who ask at a time."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

FRESH_S = 0.5
"""All who ask within this time get the same answer."""

T = TypeVar("T")


class SharedAnswer(Generic[T]):
    """The newest answer to one question; an error is shared like an answer."""

    def __init__(self, find_out: Callable[[], Awaitable[T]]) -> None:
        self._find_out = find_out
        self._task: asyncio.Task[T] | None = None
        self._answered_s = 0.0

    async def get(self, at_most_s: float = FRESH_S) -> T:
        """Return what is known, at most so old; raise what went wrong."""
        task = self._task
        age_s = time.monotonic() - self._answered_s
        if task is None or (task.done() and age_s >= at_most_s):
            task = self._task = asyncio.create_task(self._ask())
            task.add_done_callback(_note_error)
        # One that stops waiting must not spoil it for the others.
        return await asyncio.shield(task)

    async def _ask(self) -> T:
        try:
            return await self._find_out()
        finally:
            self._answered_s = time.monotonic()


def _note_error(task: "asyncio.Task[Any]") -> None:
    """Take note of an error that everybody has given up waiting for."""
    if not task.cancelled():
        task.exception()
