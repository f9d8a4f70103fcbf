"""Whoever follows bars with the Python client, and asks for them over REST."""

import asyncio
import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from decimal import Decimal
from threading import Thread
from typing import Any

from tests.conftest import eventually
from tests.gateway.servers import Gateway
from tests.throttle.analytics.bar_oracle import fraction
from tickthrottle_client.tick_client import TickClient

Place = tuple[str, int]

EXACT = ("open", "high", "low", "close", "volume", "value")


def figures_of(bar: Mapping[str, Any]) -> dict[str, Any]:
    """Return a bar as ``bar_oracle`` has it."""
    exact = {name: fraction(bar[name]) for name in EXACT}
    return {**exact, "trades": bar["trades"], "revision": bar["revision"]}


class BarListener:
    """The newest state of each bar that came; none may go back."""

    def __init__(self) -> None:
        self.bars: dict[Place, dict[str, Any]] = {}
        self.went_back: list[Place] = []

    def put(self, bar: dict[str, Any]) -> None:
        """Take in what has changed."""
        place = bar["isin"], bar["start"]
        known = self.bars.get(place)
        edition = bar["revision"], bar["trades"]
        if known is not None and edition < (known["revision"], known["trades"]):
            self.went_back.append(place)
        self.bars[place] = bar

    def figures(self) -> dict[Place, dict[str, Any]]:
        """Return every bar as ``bar_oracle`` has it."""
        return {place: figures_of(bar) for place, bar in tuple(self.bars.items())}


@contextmanager
def listening(
    gateway: Gateway, isins: Collection[str], interval: str = "1m", last: int = 60
) -> Iterator[BarListener]:
    """Follow the bars of instruments until the block ends."""
    listener, over = BarListener(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def follow() -> None:
        url = f"ws://{gateway.host}:{gateway.port}/v1/stream"
        async with TickClient(url, waits=True) as ticks:
            ticks.bars(interval, isins, listener.put, last=last)
            await over.wait()

    thread = Thread(target=loop.run_until_complete, args=(follow(),))
    thread.start()
    try:
        yield listener
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(20)
        assert not thread.is_alive()
        loop.close()
    assert listener.went_back == []


def bars_over_rest(
    gateway: Gateway, isins: Collection[str]
) -> dict[Place, dict[str, Any]]:
    """Return the newest 1,000 minutes of instruments, as ``bar_oracle`` has them."""
    found = {}
    for isin in isins:
        status, body = gateway.get(f"/v1/bars/{isin}?limit=1000")
        assert status == 200, body
        bars = json.loads(body, parse_float=Decimal)["data"]
        found |= {(isin, bar["start"]): figures_of(bar) for bar in bars}
    return found


def check_clients(
    gateway: Gateway,
    listener: BarListener,
    expected: Mapping[Place, Mapping[str, Any]],
) -> None:
    """Compare what clients have, over stream and REST, with the oracle's bars."""
    isins = sorted({isin for isin, _ in expected})
    assert bars_over_rest(gateway, isins) == expected
    eventually(lambda: listener.figures() == expected, 60)
