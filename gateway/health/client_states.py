"""In which state a client is, how many are in each, and which are slowest."""

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Annotated, Literal, get_args

from pydantic import Field

from gateway.stream.client import Client, Kind
from tickthrottle_client.tick_v1 import ALL

State = Literal["new", "live", "behind", "stuck"]
"""``new`` has asked for nothing yet, ``live`` has been sent everything, ``behind`` has
something waiting, ``stuck`` has taken not one byte of it for a second or longer.
"""

STATES: tuple[State, ...] = get_args(State)

STUCK_AFTER_S = 1.0

SLICE_S = 0.002
_AT_ONCE = 32

Slowness = tuple[int, int, int]


def state_of(client: Client, now_s: float) -> State:
    """Return a client's state."""
    sender, delivery = client.sender, client.delivery
    if sender.stuck_s(now_s) >= STUCK_AFTER_S:
        return "stuck"
    if sender.unsent_bytes or delivery.is_owed:
        return "behind"
    return "live" if client.commands.has_asked else "new"


def slowness(state: State, unsent_bytes: int, pending: int) -> Slowness:
    """Return what orders clients: greater is slower."""
    if state in ("new", "live"):
        return (0, 0, pending)
    return (2 if state == "stuck" else 1, unsent_bytes, pending)


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One client, for operators."""

    id: Annotated[str, Field(examples=["c-7f3a9102"])]
    state: Annotated[State, Field(examples=["behind"])]
    address: Annotated[str, Field(examples=["203.0.113.7"])]
    kind: Kind
    keys: Annotated[int, Field(examples=[30])]
    everything: Annotated[bool, Field(examples=[False])]
    pending: Annotated[int, Field(examples=[12])]
    unsent_bytes: Annotated[int, Field(examples=[65536])]
    connected_ms: Annotated[int, Field(examples=[1773964201004])]
    sent_ms: Annotated[int, Field(examples=[1773964804190])]


def row_of(client: Client, now_s: float, now_ms: int) -> ClientRow:
    """Describe a client; ``now_ms`` is the time of day at ``now_s``."""

    def time_of_day(at_s: float) -> int:
        return now_ms - round((now_s - at_s) * 1_000)

    delivery, sender = client.delivery, client.sender
    return ClientRow(
        client.id,
        state_of(client, now_s),
        client.commands.address,
        client.kind,
        len(delivery.keys),
        ALL in delivery.keys,
        delivery.pending,
        sender.unsent_bytes,
        time_of_day(client.connected_s),
        time_of_day(client.sent_s),
    )


class ClientCensus:
    """Counts clients by state and keeps the ``most`` slowest; ``only`` of a state."""

    def __init__(self, most: int = 0, only: State | None = None) -> None:
        self.states: dict[State, int] = dict.fromkeys(STATES, 0)
        self._most = most
        self._only = only
        self._count = 0
        self._slowest: list[tuple[Slowness, int, Client]] = []

    def add(self, client: Client, now_s: float) -> None:
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
        return [client for _, _, client in sorted(self._slowest, reverse=True)]


async def take_census(
    clients: Iterable[Client], most: int = 0, only: State | None = None
) -> ClientCensus:
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
