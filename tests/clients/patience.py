"""Waiting in a test that runs in an event loop."""

import asyncio
from collections.abc import Callable

from tests.conftest import PATIENCE


async def soon(check: Callable[[], object], within_s: float = 10) -> None:
    """Wait until ``check`` is true."""
    within_s *= PATIENCE
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + within_s
    while not check():
        assert loop.time() < deadline_s, "it did not come"
        await asyncio.sleep(0.01)
