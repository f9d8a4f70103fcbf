"""A client that keeps what is wrong with what it gets, across its reconnects."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.conftest import eventually
from tickthrottle_client import TickClient


class Follower:
    """Follows everything: no price goes back, and it knows what windows it has."""

    def __init__(self) -> None:
        self.window_ms = 0
        self.prices = 0
        self.faults: list[str] = []
        self.connections = 0
        self.newest: dict[str, tuple[int, int]] = {}
        self.skipped: set[int] = set()
        """Offsets it got nothing of: windows without a trade, or lost ones."""
        self._offset: int | None = None

    def take(self, message: dict[str, Any]) -> None:
        """Check one message of the gateway."""
        if message["type"] == "welcome":
            self.connections += 1
        if message["type"] == "ack":
            self._resumed(message)
        if message["type"] not in ("snapshot", "update"):
            return
        self._follow(message)
        self.window_ms = message.get("window") or self.window_ms
        for row in message["data"]:
            version = row["time"], row["seq"]
            before = self.newest.get(row["isin"], version)
            if version < before:
                self.faults.append(f"{row['isin']} went back: {before}, {version}")
            self.newest[row["isin"]] = version
            self.prices += 1

    def _resumed(self, message: dict[str, Any]) -> None:
        if self._offset is not None and not message["resumed"]:
            self.faults.append(f"connection {self.connections}: it did not resume")

    def _follow(self, message: dict[str, Any]) -> None:
        offset = message["offset"]
        if offset is None:
            return
        # A snapshot has all that has changed since the position it resumed from.
        if message["type"] == "update" and self._offset is not None:
            first = offset - message.get("merged", 1) + 1
            self.skipped |= set(range(self._offset + 1, first))
        if message.get("final", True):
            self._offset = offset


@contextmanager
def following(url: str) -> Iterator[Follower]:
    """Follow everything until the block ends, whatever becomes of connections."""
    follower = Follower()

    async def follow() -> None:
        async with TickClient(url, waits=True, on_message=follower.take) as ticks:
            ticks.subscribe(["*"], lambda item: None)
            await asyncio.to_thread(is_over.wait)

    is_over = threading.Event()
    thread = threading.Thread(target=asyncio.run, args=(follow(),))
    thread.start()
    try:
        yield follower
    finally:
        is_over.set()
        thread.join()


def wait_for_windows(follower: Follower, windows: int = 2) -> None:
    """Wait until so many windows more have come, with prices."""
    prices, since_ms = follower.prices, time.time() * 1_000
    eventually(
        lambda: (
            follower.window_ms > since_ms + windows * 2_000 - 2_000
            and follower.prices > prices
        ),
        120,
    )
