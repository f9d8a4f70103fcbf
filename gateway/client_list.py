"""PURE: the clients in the operators' order, the slowest first.

Whoever walks through thousands of them does so in slices (``take_census``).
"""

import asyncio
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Literal, get_args

from gateway.client import Client, Kind
from gateway.views import ALL

State = Literal["new", "live", "behind", "stuck"]
"""``new`` has asked for nothing yet, ``live`` has been sent everything, ``behind`` has
something waiting, ``stuck`` has taken not one byte of it for a second or longer.
"""

STATES: tuple[State, ...] = get_args(State)

STUCK_AFTER_S = 1.0

SLICE_S = 0.002
"""Clients are looked at for so long before the event loop may do something else."""

_AT_ONCE = 32

Slowness = tuple[int, int, int]


def state_of(client: Client, now_s: float) -> State:
    """Return a client's state."""
    sender, session = client.sender, client.session
    if sender.stuck_s(now_s) >= STUCK_AFTER_S:
        return "stuck"
    if sender.unsent_bytes or session.is_owed:
        return "behind"
    return "live" if session.has_asked else "new"


def slowness(client: Client, state: State) -> Slowness:
    """Return what orders clients: greater is slower."""
    if state in ("new", "live"):
        return (0, 0, client.session.pending)
    rank = 2 if state == "stuck" else 1
    return (rank, client.sender.unsent_bytes, client.session.pending)


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client, for operators."""

    id: str
    state: State
    address: str
    kind: Kind
    keys: int
    everything: bool
    pending: int
    unsent_bytes: int
    connected_ms: int
    sent_ms: int


def row_of(client: Client, now_s: float, now_ms: int) -> ClientRow:
    """Describe a client; ``now_ms`` is the time of day at ``now_s``."""

    def time_of_day(at_s: float) -> int:
        return now_ms - round((now_s - at_s) * 1_000)

    session, sender = client.session, client.sender
    return ClientRow(
        client.id,
        state_of(client, now_s),
        client.address,
        client.kind,
        len(session.keys),
        ALL in session.keys,
        session.pending,
        sender.unsent_bytes,
        time_of_day(client.connected_s),
        time_of_day(client.sent_s),
    )


class Census:
    """Counts clients by state and keeps the ``most`` slowest; ``only`` of a state."""

    def __init__(self, most: int = 0, only: State | None = None) -> None:
        self.states: dict[State, int] = dict.fromkeys(STATES, 0)
        self._most = most
        self._only = only
        self._seen = 0
        self._slowest: list[tuple[Slowness, int, Client]] = []

    def add(self, client: Client, now_s: float) -> None:
        """Take in a client."""
        state = state_of(client, now_s)
        self.states[state] += 1
        self._seen += 1
        if not self._most or self._only not in (None, state):
            return
        # Of two equally slow ones the older comes first; no two have the same number.
        entry = (slowness(client, state), -self._seen, client)
        if len(self._slowest) < self._most:
            heappush(self._slowest, entry)
        elif entry > self._slowest[0]:
            heapreplace(self._slowest, entry)

    def slowest(self) -> Iterator[Client]:
        """Yield the slowest clients, the very slowest first."""
        for _, _, client in sorted(self._slowest, reverse=True):
            yield client


async def take_census(
    clients: Iterable[Client], most: int = 0, only: State | None = None
) -> Census:
    """Look at every client, leaving the event loop to others in between."""
    census = Census(most, only)
    now_s = began_s = time.monotonic()
    for number, client in enumerate(clients, 1):
        census.add(client, now_s)
        if number % _AT_ONCE == 0:
            now_s = time.monotonic()
            if now_s - began_s > SLICE_S:
                await asyncio.sleep(0)
                now_s = began_s = time.monotonic()
    return census
