"""A sender that writes nowhere: tests take its client's frames themselves."""

import asyncio
import json
from contextlib import suppress
from typing import Any

from gateway.stream.client import Client, Ending
from gateway.stream.hub import Hub


class Listener:
    """Notes that it was woken, and how the connection was ended.

    ``now_s`` is when it joins: that of the clock, where the hub runs by the clock.
    """

    def __init__(self, hub: Hub, now_s: float = 0.0) -> None:
        self.stuck = False
        self.stuck_for_s = 0.0
        self.unsent_bytes = 0
        self.ending: Ending | None = None
        self.client: Client = hub.join(self, now_s)
        self.woken = asyncio.Event()
        self.ended = asyncio.Event()

    def wake(self) -> None:
        """Note it."""
        self.woken.set()

    is_ready = False

    def write(self, frame: bytes) -> int:
        """Never called: it is never ready."""
        raise NotImplementedError

    def stuck_s(self, now_s: float) -> float:
        """As the test says."""
        return 1e6 if self.stuck else self.stuck_for_s

    def end(self, ending: Ending) -> None:
        """Note it."""
        self.ending = ending
        self.ended.set()

    def subscribe(self, *keys: str) -> None:
        """Have the client watch the keys, its snapshot behind it."""
        text = json.dumps({"op": "subscribe", "keys": keys})
        self.client.commands.answer(text, 0.0, 0)
        self.frames()
        self.woken.clear()

    def next_frame(self) -> bytes | None:
        """Return what the client is due next."""
        return self.client.next_frame()

    def frames(self) -> list[dict[str, Any]]:
        """Return everything the client is due."""
        found = []
        while (frame := self.next_frame()) is not None:
            found.append(json.loads(frame))
        return found

    async def is_woken(self) -> bool:
        """Say whether it was woken, now or as soon as the hub gets to it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await self.woken.wait()
        return self.woken.is_set()
