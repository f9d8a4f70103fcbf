"""Long work in the event loop, in pieces: others are served in between.

It rests for as long as it works, and longer if whoever asked has had his share of the
loop. So most steps of others meet a loop that is free.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from typing import TypeVar

from gateway.admission.loop_turns import current_share

T = TypeVar("T")

MOST_REST_S = 0.01
"""A slice that the machine had for others meanwhile took no longer than this."""

SLICE_S = 0.002
"""One client's work holds the event loop for this long at a time, and one step."""


async def in_slices(steps: Iterable[T]) -> AsyncIterator[T]:
    """Yield what ``steps`` yields; after each slice, rest for as long as it took."""
    share, began_s = current_share(), time.monotonic()
    for step in steps:
        yield step
        worked_s = time.monotonic() - began_s
        if worked_s >= SLICE_S:
            await asyncio.sleep(min(worked_s, MOST_REST_S))
            if share is not None:
                await share.wait()
            began_s = time.monotonic()
