"""Questions that cost something to answer: asked once for all who ask at a time."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

FRESH_S = 0.5
"""All who ask within this time get the same answer."""

T = TypeVar("T")


class AskedInThread(Generic[T]):
    """Asks, and waits for so long; all who ask meanwhile wait for the same answer.

    ``name`` is the thread's. An answer that comes when nobody waits for it any more is
    that of the next question if it ``keeps_late`` ones, else it is dropped.
    """

    def __init__(self, name: str, *, keeps_late: bool = False) -> None:
        self._name = name
        self._keeps_late = keeps_late
        self._asked: asyncio.Future[T] | None = None

    async def ask(self, question: Callable[[], T], within_s: float) -> T:
        """Return the answer of ``question``, which must not raise.

        Raises TimeoutError; the question is still under way then.
        """
        asked = self._asked
        if asked is None or (asked.done() and not self._keeps_late):
            loop = asyncio.get_running_loop()
            asked = self._asked = loop.create_future()
            # A daemon: who is away must not hold up a planned stop.
            threading.Thread(
                target=_answer,
                args=(question, loop, asked),
                name=self._name,
                daemon=True,
            ).start()
        async with asyncio.timeout(within_s):
            answer = await asyncio.shield(asked)
        if self._asked is asked:
            self._asked = None
        return answer


def _answer(
    question: Callable[[], T],
    loop: asyncio.AbstractEventLoop,
    asked: "asyncio.Future[T]",
) -> None:
    answer = question()
    with suppress(RuntimeError):
        # The loop may have ended.
        loop.call_soon_threadsafe(_settle, asked, answer)


def _settle(asked: "asyncio.Future[T]", answer: T) -> None:
    if not asked.done():
        asked.set_result(answer)


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
