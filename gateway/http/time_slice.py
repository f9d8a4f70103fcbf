"""Long work in the event loop, in pieces: others are served in between.

It rests for as long as it works. So however much one client asks for, half of the time
is left to others, and most of their steps meet a loop that is free.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

MOST_REST_S = 0.01
"""A slice that the machine had for others meanwhile took no longer than this."""

SLICE_S = 0.002
"""One client's work holds the event loop for this long at a time, and one step."""


async def in_slices(steps: Iterable[T]) -> AsyncIterator[T]:
    """Yield what ``steps`` yields; after each slice, rest for as long as it took."""
    began_s = time.monotonic()
    for step in steps:
        yield step
        worked_s = time.monotonic() - began_s
        if worked_s >= SLICE_S:
            await asyncio.sleep(min(worked_s, MOST_REST_S))
            began_s = time.monotonic()
