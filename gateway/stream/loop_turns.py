"""What clients say holds up the event loop for a slice at a time, all of it together.

Two hundred streams may ask for everything in one and the same turn of the loop, and a
thousand requests may come at once: each is short, and all of them are not.
"""

import asyncio
import time
from itertools import zip_longest

SLICE_S = 0.005
"""In one turn of the event loop no more is begun after this long."""


class LoopTurns:
    """Lets those who come in one turn of the event loop begin until a slice is over.

    The others begin in the next turns: one of each address, then the second of each,
    in the order in which they came. Whoever sends much waits behind himself.
    """

    def __init__(self) -> None:
        self._until_s: float | None = None
        self._waiting: dict[str, list[asyncio.Future[None]]] = {}

    async def taken(self, address: str) -> None:
        """Return when there is time for one more of an address."""
        loop = asyncio.get_running_loop()
        while self._until_s is not None and time.monotonic() >= self._until_s:
            turn = loop.create_future()
            self._waiting.setdefault(address, []).append(turn)
            await turn
        if self._until_s is None:
            self._until_s = time.monotonic() + SLICE_S
            loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._until_s = None
        waiting, self._waiting = self._waiting, {}
        for turns in zip_longest(*waiting.values()):
            for turn in turns:
                if turn is not None and not turn.done():
                    turn.set_result(None)
