"""Follows the trade log for those clients that want every trade of an instrument.

While nobody does, nothing is read. While somebody does, the log is looked at ten times
a second, once for all.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from gateway.http.time_slice import in_slices
from gateway.stream.trade_delivery import TradeDesk, encode_entry
from gateway.upstream.trade_tail import LogUnread, TailPiece, TradeTail

LOOK_S = 0.1
"""How often the log is looked at; less often where a look takes more than half of it.
"""

YIELDS_S = 1.0
"""So long trades wait at most while a window goes out: those who have lists are first.
"""

AGAIN_S = 1.0
"""How soon it is looked at again where it could not be."""

MOST_BEHIND_MS = 30_000
"""Who is further behind the log's end goes on at the end, and says so."""

log = structlog.get_logger()


class TradeFollower:
    """Reads the end of the log for a desk; ``run`` lives until it is cancelled.

    ``served`` waits while a window goes out, for the seconds that it is given at most.
    """

    def __init__(
        self,
        tail: TradeTail,
        desk: TradeDesk,
        window_ms: Callable[[], int],
        served: Callable[[float], Awaitable[None]],
    ) -> None:
        self._tail = tail
        self._desk = desk
        self._window_ms = window_ms
        self._served = served

    async def run(self) -> None:
        """Follow whatever is followed."""
        while True:
            await self._desk.followed()
            self._tail.begin()
            while self._desk.isins:
                began_s = time.monotonic()
                pause_s = await self._look()
                took_s = time.monotonic() - began_s
                # Never more than half of the time.
                await asyncio.sleep(max(took_s, pause_s - took_s))

    async def _look(self) -> float:
        """Hand out what has come; return after how many seconds to look again."""
        desk = self._desk
        await self._served(YIELDS_S)
        try:
            piece = await self._tail.read(desk.isins)
        except LogUnread as error:
            if desk.problem is None:
                log.warning("trades cannot be followed", reason=str(error))
            desk.problem = str(error)
            self._tail.begin()
            desk.skip()
            return AGAIN_S
        if desk.problem is not None:
            log.info("trades are followed again")
            desk.problem = None
        # Of a topic a piece may hold none: what was aborted, or compacted away.
        if piece.is_full and piece.entries and _is_far_behind(piece):
            self._tail.begin()
            desk.skip()
            return LOOK_S
        if piece.is_cut:
            desk.skip()
        desk.counters.trade_entries_read += len(piece.entries)
        window_ms = self._window_ms()
        encoded = (encode_entry(*e, desk.isins, window_ms) for e in piece.entries)
        trades: dict[str, list[bytes]] = {}
        # Windows of others go out in between.
        async for entry in in_slices(encoded):
            if entry is not None:
                trades.setdefault(entry[0], []).append(entry[1])
        await self._served(YIELDS_S)
        desk.publish(trades)
        return 0 if piece.is_full else LOOK_S


def _is_far_behind(piece: TailPiece) -> bool:
    newest_ms = piece.entries[-1][0]
    return newest_ms < time.time_ns() // 1_000_000 - MOST_BEHIND_MS
