"""Counts the clients by state and finds the slowest, leaving time to others."""

import asyncio
import time
from collections.abc import Iterable
from heapq import heappush, heapreplace

from gateway.health.client_states import STATES, Slowness, State, slowness, state_of
from gateway.stream.client import Client

SLICE_S = 0.002
"""Clients are looked at for this long before the event loop may do something else."""

_AT_ONCE = 32


class ClientCensus:
    """Counts clients by state and keeps the ``most`` slowest; ``only`` of a state."""

    def __init__(self, most: int = 0, only: State | None = None) -> None:
        self.states: dict[State, int] = dict.fromkeys(STATES, 0)
        self._most = most
        self._only = only
        self._count = 0
        self._slowest: list[tuple[Slowness, int, Client]] = []

    def add(self, client: Client, now_s: float) -> None:
        """Take in a client."""
        state = state_of(client, now_s)
        self.states[state] += 1
        self._count += 1
        if not self._most or self._only not in (None, state):
            return
        # Of two equally slow ones the older comes first; no two have the same number.
        slow = slowness(state, client.sender.unsent_bytes, client.delivery.pending)
        entry = (slow, -self._count, client)
        if len(self._slowest) < self._most:
            heappush(self._slowest, entry)
        elif entry > self._slowest[0]:
            heapreplace(self._slowest, entry)

    def slowest(self) -> list[Client]:
        """Return the slowest clients, the very slowest first."""
        return [client for _, _, client in sorted(self._slowest, reverse=True)]


async def take_census(
    clients: Iterable[Client], most: int = 0, only: State | None = None
) -> ClientCensus:
    """Look at every client, leaving the event loop to others in between."""
    census = ClientCensus(most, only)
    now_s = began_s = time.monotonic()
    for number, client in enumerate(clients, 1):
        census.add(client, now_s)
        if number % _AT_ONCE == 0:
            now_s = time.monotonic()
            if now_s - began_s > SLICE_S:
                await asyncio.sleep(0)
                now_s = began_s = time.monotonic()
    return census
