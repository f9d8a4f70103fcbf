"""Long work in the event loop, in pieces: others are served in between."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

T = TypeVar("T")

SLICE_S = 0.002
"""One client's work holds the event loop for this long at a time, and one step."""


async def in_slices(steps: Iterable[T]) -> AsyncIterator[T]:
    """Yield what ``steps`` yields; let others go first whenever a slice is over."""
    until_s = time.monotonic() + SLICE_S
    for step in steps:
        yield step
        if time.monotonic() >= until_s:
            await asyncio.sleep(0)
            until_s = time.monotonic() + SLICE_S
