"""When garbage is looked for among all objects: halfway between two windows.

A full collection stops the process while it looks at every object it has: 0.5 s with
fifteen thousand clients. Python would begin one whenever many objects have been made,
which is when a window is on its way to its readers. So what has been looked at and
stays is never looked at again: a connection's objects end without a collection. While
thousands of clients join, which are 62 objects each, one waits for no calm moment: it
would have had 90,000 of them to look at.
"""

import asyncio
import gc
import time
from collections.abc import Callable

CALM = 0.6
"""After this share of a window, the one before has long been sent."""

MOST_OF_TIME = 0.02
"""Full collections take no more of the time than this, unless windows take longer."""

MOST_S = 0.005
"""What takes longer to look at is frozen once it was. Below that little is frozen: what
refers to itself, and was in use at that moment, would stay for good.
"""

MOST_YOUNG = 1
"""Clients may come faster than windows. Once more collections of young objects than
this have left some 8,000 each, Python's next collection is a full one.
"""

NEVER = 1_000_000_000

PYTHON_S_OWN = 10_000
"""Python may begin with some hundreds of frozen objects; more are somebody's choice."""


def wait_s(now_ms: int, window_ms: int, took_s: float) -> float:
    """Return after how many seconds a full collection may begin.

    ``now_ms`` is the time of day, ``took_s`` is what the last collection took.
    """
    rest_s = took_s / MOST_OF_TIME
    moment_ms = now_ms + rest_s * 1_000
    return rest_s + (window_ms * CALM - moment_ms) % window_ms / 1_000


class CalmCollections:
    """Full collections at calm moments, and at others only of few objects.

    A process that has frozen objects before (``gc.freeze``) says itself what is never
    looked at, and gets none at others. ``window_ms`` is asked for the length of a
    window, whose ends are multiples of it.
    """

    def __init__(self, window_ms: Callable[[], int]) -> None:
        self._window_ms = window_ms
        self._began_s = self._took_s = 0.0

    async def run(self) -> None:
        """Collect until cancelled; the process is as it was then."""
        before, is_ours = gc.get_threshold(), gc.get_freeze_count() < PYTHON_S_OWN
        gc.set_threshold(*before[:2], MOST_YOUNG if is_ours else NEVER)
        note = self._freeze if is_ours else self._measure
        gc.callbacks.append(note)
        try:
            # Python waits for a quarter of what the last one kept: twice, of nothing.
            gc.collect()
            while True:
                gc.collect()
                now_ms = time.time_ns() // 1_000_000
                await asyncio.sleep(wait_s(now_ms, self._window_ms(), self._took_s))
        finally:
            gc.callbacks.remove(note)
            gc.set_threshold(*before)
            if is_ours:
                gc.unfreeze()

    def _measure(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            if phase == "start":
                self._began_s = time.perf_counter()
            else:
                self._took_s = time.perf_counter() - self._began_s

    def _freeze(self, phase: str, info: dict[str, int]) -> None:
        """Freeze what a full collection has looked at, if that took long."""
        self._measure(phase, info)
        if phase == "stop" and self._took_s > MOST_S:
            gc.freeze()
            # The next one has little to look at, unless it waits for long.
            self._took_s = 0.0
