"""Reads the window log: the published windows that Redis still holds."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import orjson
from redis.asyncio import Redis

from gateway.protocol.market_instruments import served_part
from ingest.instrument_table.known_instruments import Instruments
from ingest.redis_keys import Keys
from throttle.contract.snapshot import WindowSnapshot

FIELD = b"snapshot"

PIECE = 4
"""This many windows are read at a time where they may be many."""

REACH = 16
"""How far apart the parts of a window are looked for, in offsets."""


class WindowLog:
    """The window log of one namespace; nothing is cached.

    Where one market is served, ``instruments`` says of which each window is told alone.
    Every method raises RedisError when the server cannot be asked and ValueError
    when an entry is not one the throttle would have written.
    """

    def __init__(
        self,
        redis: Redis,
        keys: Keys,
        instruments: Callable[[], Instruments] = Instruments,
    ) -> None:
        self._redis = redis
        self._stream = keys.windows
        self._instruments = instruments

    async def between(self, first: int, last: int) -> list[WindowSnapshot]:
        """Return the windows with offsets from ``first`` to ``last``, if still held."""
        entries: Any = await self._redis.xrange(self._stream, f"{first}-0", f"{last}-0")
        return [self._decode(entry) for entry in entries]

    async def until(self, last: int, limit: int) -> list[WindowSnapshot]:
        """Return up to ``limit`` windows with offsets up to ``last``, newest first."""
        entries: Any = await self._redis.xrevrange(
            self._stream, f"{last}-0", "-", count=limit
        )
        return [self._decode(entry) for entry in entries]

    async def parts(
        self, end_ms: int, until: int | None = None
    ) -> list[WindowSnapshot]:
        """Return what each job has published of the window that ends then.

        Newest first, with offsets up to ``until``. A part that a job has published
        more than ``REACH`` updates before or after the others may be left out.
        """
        top = until
        if until is None:
            if (until := await self._last_until(end_ms)) is None:
                return []
            top = until + REACH
        entries: Any = await self._redis.xrevrange(
            self._stream, f"{top}-0", f"{max(until - REACH, 0)}-0"
        )
        return [self._decode(entry) for entry in entries if _end_ms(entry) == end_ms]

    async def newest(
        self, limit: int, from_ms: int | None = None, to_ms: int | None = None
    ) -> AsyncIterator[WindowSnapshot]:
        """Yield up to ``limit`` windows, in the order of publication, newest first.

        They are read and decoded as they are taken, a few at a time.
        ``from_ms`` and ``to_ms`` bound the windows' ends, both included. Where several
        jobs publish, one that is behind may have published a window within the bounds
        after windows beyond them: such a one may be left out.
        """
        top = "+"
        if to_ms is not None:
            offset = await self._last_until(to_ms)
            if offset is None:
                return
            top = f"{offset}-0"
        while limit > 0:
            count = min(limit, PIECE)
            entries: Any = await self._redis.xrevrange(
                self._stream, top, "-", count=count
            )
            for entry in entries:
                window = self._decode(entry)
                is_late_enough = from_ms is None or window.window >= from_ms
                if is_late_enough and (to_ms is None or window.window <= to_ms):
                    yield window
            if len(entries) < count:
                return
            limit -= count
            top = f"({entries[-1][0].decode()}"

    def _decode(self, entry: Any) -> WindowSnapshot:
        return served_part(WindowSnapshot.decode(_message(entry)), self._instruments())

    async def _last_until(self, to_ms: int) -> int | None:
        """Return the offset of the newest window that ends by ``to_ms``.

        The windows' ends of a job grow with their offsets, so a few single reads find
        it; those of several jobs nearly do.
        """
        first: Any = await self._redis.xrange(self._stream, count=1)
        last: Any = await self._redis.xrevrange(self._stream, count=1)
        if not first or not last or _end_ms(first[0]) > to_ms:
            return None
        low, high = _offset(first[0]), _offset(last[0])
        while low < high:
            middle = (low + high + 1) // 2
            entries: Any = await self._redis.xrevrange(
                self._stream, f"{middle}-0", f"{low}-0", count=1
            )
            # Trimmed away between two reads: the log now begins above ``middle``.
            if not entries or _end_ms(entries[0]) <= to_ms:
                low = middle
            else:
                high = _offset(entries[0]) - 1
        return low


def _message(entry: Any) -> bytes:
    try:
        return bytes(entry[1][FIELD])
    except (KeyError, TypeError) as error:
        raise ValueError(f"window log entry {entry[0]!r}: {error!r}") from None


def _offset(entry: Any) -> int:
    return int(entry[0].partition(b"-")[0])


def _end_ms(entry: Any) -> int:
    header = orjson.loads(_message(entry).partition(b"\n")[0])
    return int(header["window"])
