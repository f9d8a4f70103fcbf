"""Reads what the analytics job keeps of bars; nothing is cached."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from redis.asyncio import Redis

from gateway.http.time_slice import in_slices
from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import MOST_READ, parts_of
from gateway.stream.bars.bar_folder import BarSpan, closed_day
from ingest.redis_keys import AnalyticsKeys
from ingest.series import is_series
from throttle.contract.bar_intervals import DAY, DayBar, fold, span_of
from throttle.contract.bars import Bar, newer
from throttle.contract.session_calendar import (
    EVERYDAY,
    EVERYWHERE,
    SessionCalendar,
    SessionCalendars,
)

PRODUCT = "bars"

INSTRUMENTS_AT_ONCE = 100

PAGE = 1_000
"""So many bars of an instrument are asked for at a time: one answer is read at once."""

END_OF_TIME_MS = 2**53


@dataclass(frozen=True, slots=True)
class BarProgress:
    """How far the job has come with bars; ``clock_ms`` is the log's clock then."""

    position: BarPosition
    clock_ms: int
    bars_ms: int
    calendars: SessionCalendars


class BarArchive(Protocol):
    """What keeps closed bars for longer; the newest within bounds of their starts."""

    async def bars(
        self, isin: str, width_ms: int, first_ms: int, last_ms: int, limit: int
    ) -> list[Bar]: ...


class BarStore:
    """The bars of one namespace; what Redis no longer has comes from the ``archive``.

    Every method raises RedisError when the server cannot be asked and ValueError when
    something is not what the job would have written.
    """

    def __init__(
        self, redis: Redis, keys: AnalyticsKeys, archive: BarArchive | None = None
    ) -> None:
        self._redis = redis
        self._keys = keys
        self._archive = archive

    async def progress(self) -> BarProgress | None:
        """Return how far the job has come, None if it has not published any bar."""
        fields: Any = await self._redis.hgetall(self._keys.progress(PRODUCT))
        return read_progress(fields)

    async def newest(self) -> list[Bar]:
        """Return the newest bar of every instrument, in the order of ISINs."""
        stored: Any = await self._redis.hgetall(self._keys.last_bars)
        lines = {isin.decode(): line for isin, line in stored.items()}
        isins = sorted(isin for isin in lines if not is_series(isin))
        bars = (Bar.decode(isin, lines[isin]) for isin in isins)
        return [bar async for bar in in_slices(bars)]

    async def isins(self) -> list[str]:
        """Return the instruments that have a bar, in their order."""
        names: Any = await self._redis.hkeys(self._keys.last_bars)
        return sorted(n for n in map(bytes.decode, names) if not is_series(n))

    async def days(self, isins: Sequence[str] | None = None) -> list[DayBar]:
        """Return the newest day of some instruments, of all without a name."""
        lines: Any = []
        if isins is None:
            stored: Any = await self._redis.hgetall(self._keys.days)
            texts = {isin.decode(): line for isin, line in stored.items()}
            isins = sorted(isin for isin in texts if not is_series(isin))
            lines = [texts[isin] for isin in isins]
        elif isins:
            lines = await self._redis.hmget(self._keys.days, list(isins))
        pairs = zip(isins, lines, strict=True)
        days = (DayBar.decode(isin, line) for isin, line in pairs if line is not None)
        return [day async for day in in_slices(days)]

    async def parts(self, spans: Sequence[BarSpan]) -> list[list[Bar]]:
        """Return the bars within each span, oldest first."""
        parts: list[list[Bar]] = []
        for first in range(0, len(spans), INSTRUMENTS_AT_ONCE):
            some = spans[first : first + INSTRUMENTS_AT_ONCE]
            async with self._redis.pipeline(transaction=False) as pipe:
                for span in some:
                    key = self._keys.bars(span.isin)
                    pipe.zrangebyscore(key, span.start_ms, f"({span.end_ms}")
                replies: Any = await pipe.execute()
            for span, lines in zip(some, replies, strict=True):
                parts.append(await _decode(span.isin, lines))
        return parts

    async def last(
        self,
        isin: str,
        interval: str,
        limit: int,
        progress: BarProgress,
        from_ms: int | None = None,
        to_ms: int | None = None,
    ) -> list[Bar]:
        """Return an instrument's newest ``limit`` bars, oldest first.

        ``from_ms`` and ``to_ms`` bound their starts, both included. Fewer come if their
        parts are more than ``MOST_READ``. Raises what the archive raises, too.
        """
        if interval == DAY and limit == 1 and from_ms is None and to_ms is None:
            days = await self.days([isin])
            if days:
                # The job keeps the newest day: none of its minutes is read.
                return [closed_day(day, progress.clock_ms) for day in days]
        calendar = progress.calendars.of(isin)
        first_ms, last_ms = _bounds(interval, calendar, from_ms, to_ms)
        parts_each = parts_of(interval, progress.bars_ms)
        count = min(limit * parts_each, MOST_READ)
        parts = await self._newest_parts(isin, first_ms, last_ms, count)
        if self._archive is not None and len(parts) < count and first_ms <= last_ms:
            # With the oldest one: if Redis lost some of its trades, the archive has it.
            upto_ms = min(last_ms, parts[0].start_ms) if parts else last_ms
            older = await self._archive.bars(
                isin, progress.bars_ms, first_ms, upto_ms, count
            )
            parts = _joined(older, parts)[-count:]
        folded = fold(parts, interval, calendar, progress.clock_ms)
        bars = [bar async for bar in in_slices(folded)]
        if len(parts) == MOST_READ:
            # Its first parts were not read.
            del bars[:1]
        return bars[-limit:]

    async def _newest_parts(
        self, isin: str, first_ms: int, last_ms: int, count: int
    ) -> list[Bar]:
        """Return an instrument's newest bars within these starts, oldest first."""
        bars: list[Bar] = []
        upto: int | str = last_ms
        while len(bars) < count:
            num = min(count - len(bars), PAGE)
            lines: Any = await self._redis.zrange(
                self._keys.bars(isin),
                *(upto, first_ms),
                byscore=True,
                desc=True,
                offset=0,
                num=num,
            )
            bars += await _decode(isin, lines)
            if len(lines) < num:
                break
            upto = f"({bars[-1].start_ms}"
        return bars[::-1]


def read_progress(fields: Mapping[bytes, bytes]) -> BarProgress | None:
    """Read the hash ``AnalyticsKeys.progress("bars")``. Raises ValueError."""
    if b"sequence" not in fields or b"epoch" not in fields:
        return None
    try:
        sequence, clock_ms = int(fields[b"sequence"]), int(fields.get(b"clock", b"0"))
        bars_ms = int(fields.get(b"bars_ms", b"60000"))
    except ValueError:
        raise ValueError("the stored progress of bars is not in numbers") from None
    if bars_ms < 1:
        raise ValueError(f"the stored bars_ms is {bars_ms}")
    position = BarPosition(fields[b"epoch"].decode(), sequence)
    calendars = EVERYWHERE
    if b"zone" in fields:
        begins = fields.get(b"begins", EVERYDAY.begins.encode())
        named = fields.get(b"calendars", b"").decode()
        zone = fields[b"zone"].decode()
        calendars = SessionCalendars.create(zone, begins.decode(), named)
    return BarProgress(position, clock_ms, bars_ms, calendars)


def _joined(older: list[Bar], later: list[Bar]) -> list[Bar]:
    """Join bars of two places, oldest first; both may have the first of ``later``."""
    if older and later and older[-1].start_ms == later[0].start_ms:
        return [*older[:-1], newer(older[-1], later[0]), *later[1:]]
    return older + later


def _bounds(
    interval: str, calendar: SessionCalendar, from_ms: int | None, to_ms: int | None
) -> tuple[int, int]:
    """Return between which starts of parts the wanted bars are, both included."""
    first_ms, last_ms = 0, END_OF_TIME_MS
    if from_ms is not None:
        start, end = span_of(from_ms, interval, calendar)
        first_ms = start if start >= from_ms else end
    if to_ms is not None:
        last_ms = span_of(to_ms, interval, calendar)[1] - 1
    return first_ms, last_ms


async def _decode(isin: str, lines: Iterable[bytes]) -> list[Bar]:
    bars = (Bar.decode(isin, line) for line in lines)
    return [bar async for bar in in_slices(bars)]
