"""Questions that may take seconds to answer, asked in a thread, one at a time."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Generic, TypeVar

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
