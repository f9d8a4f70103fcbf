"""Gives every client its turn when there is news: in slices, each as regularly as can.

A client's place in the order moves by a hundredth of the crowd from one window to the
next, towards the front or towards the back, and turns round there. So in the long run
everybody is as often first as last, and from window to window nobody waits longer or
shorter than before by more than a hundredth of the time that a window takes.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from math import ceil
from typing import TypeVar

from gateway.stream.client import Client

SLICE_S = 0.005
"""Clients are served for this long before the event loop may do something else."""

POLITE_S = 0.2
"""A request waits this long at most until the clients of the stream are served."""

ROUNDS = 200
"""After so many windows everybody has had every place, and the order begins anew."""

T = TypeVar("T")


def serving_order(clients: Sequence[T], number: int) -> list[T]:
    """Return the order of a window with this number.

    The crowd is a ring of two lines, one that moves to the front and one that moves to
    the back; the order takes from each in turns.
    """
    shift = len(clients) * (number % ROUNDS) // ROUNDS
    ring = [*clients[shift:], *clients[:shift]]
    half = ceil(len(ring) / 2)
    order = [*ring]
    order[::2], order[1::2] = ring[:half], ring[half:][::-1]
    return order


class ServingRound:
    """The clients whose turn has not come, one round at a time.

    ``serve`` gives a client its turn and says whether it needs no further one;
    ``done`` is called when everybody has had his. ``begin`` replaces a round that is
    not over: whoever still waits gets his turn in the new one.

    With ``spread_s`` a round takes that long, for all clients evenly, unless there is
    too much to do for that; 0: as quickly as it can.
    """

    def __init__(
        self,
        serve: Callable[[Client, float], bool],
        done: Callable[[], None],
        spread_s: Callable[[], float],
    ) -> None:
        self._serve_client = serve
        self._done = done
        self._spread_s = spread_s
        self._due: deque[Client] = deque()
        self._count = self._turns = 0
        self._began_s = self._round_s = 0.0
        self._is_running = False
        self._over = asyncio.Event()

    @property
    def due(self) -> Collection[Client]:
        """Those whose turn has not come."""
        return self._due

    async def over(self, within_s: float = POLITE_S) -> None:
        """Wait while clients are served as quickly as can be, ``within_s`` at most.

        Whoever polls can wait for a window to go out; the window cannot wait for them.
        """
        if self._is_running and not self._round_s:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await self._over.wait()

    def begin(self, clients: Sequence[Client], number: int) -> None:
        """Give every client its turn; ``number`` is that of the window."""
        self._due = deque(serving_order(clients, number))
        self._count, self._turns = len(clients), 0
        self._began_s, self._round_s = time.monotonic(), self._spread_s()
        if not self._due:
            self._done()
        elif not self._is_running:
            self._is_running = True
            self._over.clear()
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        now_s = time.monotonic()
        until_s, due = now_s + SLICE_S, self._due
        most = len(due)
        if self._round_s:
            share = (until_s - self._began_s) / self._round_s
            most = min(most, ceil(self._count * share) - self._turns)
        turns = 0
        while due and turns < most and now_s < until_s:
            client = due.popleft()
            turns += 1
            if not self._serve_client(client, now_s):
                due.append(client)
            now_s = time.monotonic()
        self._turns += turns
        loop = asyncio.get_running_loop()
        if not due:
            self._is_running = False
            self._over.set()
            self._done()
        elif turns < most or not self._round_s:
            loop.call_soon(self._serve)
        else:
            loop.call_later(SLICE_S, self._serve)
