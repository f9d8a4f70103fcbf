"""Reads movers, bursts, moves and days: what the analytics job keeps beside bars."""

from collections.abc import Sequence
from typing import Any

from redis.asyncio import Redis

from gateway.http.time_slice import in_slices
from ingest.redis_keys import AnalyticsKeys
from throttle.contract.bar_intervals import DayBar
from throttle.contract.products.bursts import TradingBurst
from throttle.contract.products.moves import Move

DAYS_PIECE = 500
"""This many days are asked for at a time."""

MOST_DAYS_KNOWN = 20_000
"""So many decoded days are kept, of as many instruments."""


class AnalyticsStore:
    """What is kept of one namespace. A day is decoded once until it changes.

    Every method raises RedisError when the server cannot be asked and ValueError when
    something is not what the job would have written.
    """

    def __init__(self, redis: Redis, keys: AnalyticsKeys) -> None:
        self._redis = redis
        self._keys = keys
        self._days: dict[str, tuple[bytes, DayBar]] = {}

    async def movers(self) -> bytes | None:
        """Return the newest lists as clients get them, None if there are none."""
        lists: Any = await self._redis.get(self._keys.movers)
        return None if lists is None else bytes(lists)

    async def bursts(self, limit: int) -> list[bytes]:
        """Return the newest bursts as clients get them, newest first."""
        return await self._newest(self._keys.bursts, b"burst", limit, TradingBurst)

    async def moves(self, limit: int) -> list[bytes]:
        """Return the newest moves as clients get them, newest first."""
        return await self._newest(self._keys.moves, b"move", limit, Move)

    async def days_version(self) -> str | None:
        """Name the state of the days: while it is the same, so are they.

        None: there are none, no bars were ever published.
        """
        name = self._keys.progress("bars")
        fields: Any = await self._redis.hmget(name, ["epoch", "sequence"])
        if None in fields:
            return None
        return b":".join(fields).decode()

    async def days(self, isins: Sequence[str]) -> dict[str, DayBar]:
        """Return the newest day of those instruments that have one.

        Of an instrument whose day has not changed it is the same object as before.
        """
        days: dict[str, DayBar] = {}
        for first in range(0, len(isins), DAYS_PIECE):
            some = list(isins[first : first + DAYS_PIECE])
            lines: Any = await self._redis.hmget(self._keys.days, some)
            pairs = (pair for pair in zip(some, lines, strict=True) if pair[1])
            async for isin, line in in_slices(pairs):
                days[isin] = self._day(isin, line)
        return days

    def _day(self, isin: str, line: bytes) -> DayBar:
        before = self._days.get(isin)
        if before is not None and before[0] == line:
            return before[1]
        day = DayBar.decode(isin, line)
        if len(self._days) < MOST_DAYS_KNOWN or before is not None:
            self._days[isin] = line, day
        return day

    async def _newest(
        self, stream: str, field: bytes, limit: int, kind: type[TradingBurst | Move]
    ) -> list[bytes]:
        entries: Any = await self._redis.xrevrange(stream, count=limit)
        try:
            bodies = (kind.decode(fields[field]).body() for _, fields in entries)
            return [body async for body in in_slices(bodies)]
        except KeyError as error:
            raise ValueError(f"an entry of {stream} has no {error}") from None
