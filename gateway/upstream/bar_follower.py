"""Follows the bars of the analytics job, while somebody watches bars.

Subscribe first, then read where the job stands, then apply what follows. A hole cannot
be filled: everybody who watches bars then gets them anew, and is told so.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import structlog
from redis.asyncio import Redis
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError

from gateway.http.time_slice import in_slices
from gateway.protocol.messages import BarPosition
from gateway.stream.bars.bar_delivery import BarDelivery, BarDesk, BarRequest
from gateway.stream.bars.bar_folder import (
    BarFolder,
    BarSpan,
    Wants,
    closed_day,
    row_of,
)
from gateway.stream.bars.bar_update import BarKeySet, BarRow, BarUpdate
from gateway.stream.counters import Counters
from gateway.upstream.bar_store import PRODUCT, BarProgress, BarStore
from gateway.upstream.redis_client import confirm_subscription
from ingest.process.outage_reasons import OutageReasons
from ingest.process.redis_fault import in_words
from ingest.redis_keys import AnalyticsKeys
from throttle.contract.bar_intervals import DAY, DayBar, fold, span_of
from throttle.contract.bars import Bar, BarsUpdate
from tickthrottle_client.tick_v1 import ALL

POLL_S = 0.1
"""How long one look for a message lasts; a request for a snapshot waits as long."""

SILENT_S = 5.0
"""After this silence the follower looks whether it has missed a message."""

LINGER_S = 30.0
"""Bars are followed for so long when nobody watches any more."""

KEPT_BYTES = 8_388_608
"""This much of the newest messages is kept for clients that come back."""

LIGHT_BARS = 5_000
"""A snapshot for which more bars are read waits for others like it, and for no other's.
"""

LIGHT_MESSAGES = 16
"""The same where a client has missed more messages than this."""

log = structlog.get_logger()


class BarFollower:
    """Tells the desk what has changed, and reads what clients ask it for.

    It asks Redis for nothing while nobody watches bars. ``run`` outlasts any failure
    of Redis and any message.
    """

    def __init__(
        self, redis: Redis, keys: AnalyticsKeys, desk: BarDesk, counters: Counters
    ) -> None:
        self._redis = redis
        self._keys = keys
        self._desk = desk
        self._counters = counters
        self._store = BarStore(redis, keys)
        self._folder = BarFolder()
        self._clock_ms = 0
        self._work = asyncio.Event()
        self._asked = asyncio.Event()
        # A client's next snapshot is read after the one before: no bar goes back.
        self._served: set[BarDelivery] = set()
        desk.on_work = self._note_work
        # The newest messages, whole, each with the log's clock; and the position and
        # the clock before the first of them.
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._kept_from = BarPosition()
        self._kept_clock_ms = 0
        # Of every instrument, by interval, as of a position.
        self._whole: dict[str, tuple[BarPosition, list[BarRow]]] = {}
        self._failures = 0
        self._reasons = OutageReasons()
        self._is_new = True

    @property
    def position(self) -> BarPosition:
        """How far bars were read."""
        return self._desk.position

    async def run(self) -> None:
        """Follow while somebody watches, until cancelled."""
        backoff = ExponentialWithJitterBackoff(cap=2, base=0.05)
        while True:
            await self._work.wait()
            try:
                await self._follow()
            except (RedisError, OSError, ValueError) as error:
                self._failures += 1
                if self._reasons.is_news(in_words(error)):
                    log.warning("bars interrupted", error=in_words(error))
                await asyncio.sleep(backoff.compute(self._failures))
            if not self._desk.has_work:
                self._work.clear()
                self._is_new = True
                self._forget()
                self._desk.position = BarPosition()

    async def _follow(self) -> None:
        """Subscribe, load, apply messages; return when nobody watches any more."""
        pubsub, serving = self._redis.pubsub(), list[asyncio.Task[None]]()
        try:
            # Subscribe before reading state: an overlap is harmless, a gap is not.
            await pubsub.subscribe(self._keys.updates(PRODUCT))
            await confirm_subscription(pubsub, "the subscription to bars", POLL_S)
            await self._load()
            if self._failures:
                log.info("bars restored", sequence=self.position.sequence)
                self._failures = 0
                self._reasons.end()
            for is_light in (True, False):
                # Nobody who watches already waits for what is read for others.
                serving.append(asyncio.create_task(self._serve(is_light=is_light)))
            heard_s = watched_s = time.monotonic()
            while True:
                message = await pubsub.get_message(
                    ignore_subscribe_messages=True, timeout=POLL_S
                )
                now_s = time.monotonic()
                if message is not None:
                    heard_s = now_s
                    await self._receive(message["data"])
                elif now_s - heard_s > SILENT_S:
                    heard_s = now_s
                    await self._load()
                for task in serving:
                    if task.done():
                        # It ends with what Redis, or a bar, could not give.
                        task.result()
                self._desk.flush(_now_ms())
                if self._desk.has_work:
                    watched_s = now_s
                elif now_s - watched_s > LINGER_S:
                    return
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            await pubsub.aclose()  # type: ignore[no-untyped-call]

    async def _load(self) -> None:
        """Read where the job stands; what was missed cannot be had but anew."""
        progress = await self._store.progress()
        if progress is None or progress.position == self.position:
            self._is_new = False
            return
        self._counters.bar_reloads += 1
        self._forget()
        self._clock_ms = progress.clock_ms
        self._folder = BarFolder(progress.bars_ms, progress.calendars, self._clock_ms)
        self._kept_from = progress.position
        self._kept_clock_ms = progress.clock_ms
        if self._is_new:
            self._desk.position = progress.position
        else:
            log.info("bars read anew", sequence=progress.position.sequence)
            self._desk.restart(progress.position)
        self._is_new = False

    async def _receive(self, data: Any) -> None:
        try:
            update = BarsUpdate.decode(data)
            days = [DayBar.decode(isin, line) for isin, line in update.days]
        except (ValueError, TypeError, AttributeError):
            self._counters.bar_messages_undecodable += 1
            log.warning("message of bars not understood", bytes=len(data))
            await self._load()
            return
        here = self.position
        if update.epoch == here.epoch and update.sequence <= here.sequence:
            return
        if (update.epoch, update.sequence) != (here.epoch, here.sequence + 1):
            await self._load()
            return
        rows = await self._rows(update.bars, days, update.clock_ms, self._desk.wants)
        self._clock_ms = update.clock_ms
        self._keep(data)
        position = BarPosition(update.epoch, update.sequence)
        self._whole.clear()
        self._counters.bar_updates_published += 1
        self._desk.publish(BarUpdate(position, rows), _now_ms())

    async def _rows(
        self,
        bars: Sequence[Bar],
        days: Sequence[DayBar],
        clock_ms: int,
        wants: Wants,
        folder: BarFolder | None = None,
    ) -> list[BarRow]:
        folder = folder or self._folder
        missing = folder.missing(bars, days, wants)
        for span, parts in zip(missing, await self._store.parts(missing), strict=True):
            folder.put(span, parts)
        changed = folder.rows(bars, days, clock_ms, wants)
        return [row async for row in in_slices(changed)]

    def _note_work(self) -> None:
        self._work.set()
        self._asked.set()

    async def _serve(self, *, is_light: bool) -> None:
        """Answer requests one after the other, until cancelled: light ones, or others.

        What is published meanwhile waits at the client until it has its snapshot, whose
        position is that from before it was read.
        """
        requests, served = self._desk.requests, self._served
        while True:
            fitting = (
                watcher
                for watcher, request in requests.items()
                if self._is_light(request) == is_light and watcher not in served
            )
            watcher = next(fitting, None)
            if watcher is None:
                self._asked.clear()
                await self._asked.wait()
                continue
            request = requests.pop(watcher)
            served.add(watcher)
            position = self.position
            try:
                progress = await self._store.progress()
                rows, is_resumed = await self._answer(request, progress)
            except BaseException:
                requests.setdefault(watcher, request)
                raise
            finally:
                served.discard(watcher)
                self._asked.set()
            watcher.take_snapshot(rows, position, is_resumed=is_resumed)

    def _is_light(self, request: BarRequest) -> bool:
        since = request.since
        behind = 0 if since is None else self.position.sequence - since.sequence
        return request.cost <= LIGHT_BARS and behind <= LIGHT_MESSAGES

    async def _answer(
        self, request: BarRequest, progress: BarProgress | None
    ) -> tuple[list[BarRow], bool]:
        if progress is None:
            return [], False
        since = request.since
        if since is not None and self._has_kept(since):
            return await self._changed_since(since, request), True
        newest_days = [
            isin
            for interval, isin in request.keys
            if interval == DAY and isin != ALL and request.last == 1
        ]
        # The newest days are kept by the job as they are.
        days = await self._store.days(newest_days)
        rows = self._day_rows(days, progress)
        for interval, isin in request.keys:
            if not request.watcher.key_set.keys:
                # Gone meanwhile.
                return [], False
            if isin == ALL:
                rows += await self._of_all(interval, progress)
            elif interval != DAY or request.last > 1:
                last = request.last
                rows += await self._of_instrument(interval, isin, last, progress)
        return rows, False

    def _day_rows(self, days: Sequence[DayBar], progress: BarProgress) -> list[BarRow]:
        self._folder.note_days(days)
        return [row_of(DAY, closed_day(day, progress.clock_ms)) for day in days]

    async def _of_instrument(
        self, interval: str, isin: str, last: int, progress: BarProgress
    ) -> list[BarRow]:
        if interval == DAY:
            self._folder.note_days(await self._store.days([isin]))
        bars = await self._store.last(isin, interval, last, progress)
        self._folder.note_open(interval, bars, progress.clock_ms)
        return [row_of(interval, bar) for bar in bars]

    async def _of_all(self, interval: str, progress: BarProgress) -> list[BarRow]:
        """Return every instrument's newest bar; read once for all who ask at a time."""
        whole, position = self._whole.get(interval), self.position
        if whole is None or whole[0] != position:
            rows = await self._read_all(interval, progress)
            self._whole[interval] = whole = position, rows
        return whole[1]

    async def _read_all(self, interval: str, progress: BarProgress) -> list[BarRow]:
        if interval == DAY:
            return self._day_rows(await self._store.days(), progress)
        newest = await self._store.newest()
        folder = BarFolder(progress.bars_ms, progress.calendars)

        def wants(name: str, _: str) -> bool:
            return name == interval

        rows = await self._rows(newest, (), progress.clock_ms, wants, folder)
        self._folder.adopt(folder)
        return rows

    async def _changed_since(
        self, since: BarPosition, request: BarRequest
    ) -> list[BarRow]:
        """Return what has changed since then, in its newest state."""
        bars: dict[tuple[str, int], Bar] = {}
        days: dict[str, DayBar] = {}
        first = since.sequence - self._kept_from.sequence
        kept = tuple(self._kept)
        clock_ms = kept[first - 1][0] if first else self._kept_clock_ms
        for _, message in kept[first:]:
            # A thread, for a message has thousands of decimals.
            update = await asyncio.to_thread(BarsUpdate.decode, message)
            bars |= {(bar.isin, bar.start_ms): bar for bar in update.bars}
            lines = in_slices(update.days)
            days |= {i: DayBar.decode(i, line) async for i, line in lines}
        key_set = BarKeySet(request.keys)
        folder = BarFolder(self._folder.bars_ms, self._folder.calendars)
        changed = tuple(bars.values()), tuple(days.values())
        ended = await self._ended_since(clock_ms, request)
        rows = await self._rows(*changed, self._clock_ms, key_set.wants, folder)
        return [*{row.id: row for row in (*ended, *rows)}.values()]

    async def _ended_since(self, since_ms: int, request: BarRequest) -> list[BarRow]:
        """Return longer bars that were open then and that the clock has closed since.

        Nothing need have changed in them. Those that began later have changed since.
        """
        clock_ms, calendars = self._clock_ms, self._folder.calendars
        spans: list[BarSpan] = []
        rows: list[BarRow] = []
        for interval, name in request.keys:
            isins = [name]
            if not self._has_ended(interval, since_ms):
                continue
            if interval == DAY:
                # The newest days are kept as they are; one before is made of its parts.
                days = await self._store.days(None if name == ALL else isins)
                isins = [d.bar.isin for d in days if d.bar.start_ms > since_ms]
                rows += [
                    row_of(DAY, closed_day(day, clock_ms))
                    for day in days
                    if since_ms < day.bar.end_ms <= clock_ms
                ]
            elif name == ALL:
                isins = await self._store.isins()
            every = ((i, *span_of(since_ms, interval, calendars.of(i))) for i in isins)
            spans += [
                BarSpan(interval, isin, start_ms, end_ms)
                for isin, start_ms, end_ms in every
                if end_ms <= clock_ms
            ]
        parts = await self._store.parts(spans)
        for span, of_it in zip(spans, parts, strict=True):
            folded = fold(of_it, span.interval, calendars.of(span.isin), clock_ms)
            rows += [row_of(span.interval, bar) for bar in folded]
        return rows

    def _has_ended(self, interval: str, since_ms: int) -> bool:
        """Tell whether any longer bar of an interval has ended since: a cheap question.

        Bars as long as those of the job are told of as they close.
        """
        calendars = self._folder.calendars
        if interval != DAY and not self._folder.is_longer(interval):
            return False
        every = (calendars.everyday, *calendars.named.values())
        ends = (span_of(since_ms, interval, calendar)[1] for calendar in every)
        return any(end_ms <= self._clock_ms for end_ms in ends)

    def _has_kept(self, since: BarPosition) -> bool:
        here, first = self.position, self._kept_from
        if since.epoch is None or not since.epoch == first.epoch == here.epoch:
            return False
        return first.sequence <= since.sequence <= here.sequence

    def _keep(self, message: bytes) -> None:
        self._kept.append((self._clock_ms, message))
        self._kept_bytes += len(message)
        while self._kept_bytes > KEPT_BYTES:
            self._kept_clock_ms, oldest = self._kept.popleft()
            self._kept_bytes -= len(oldest)
            first = self._kept_from
            self._kept_from = BarPosition(first.epoch, first.sequence + 1)

    def _forget(self) -> None:
        self._kept.clear()
        self._kept_bytes = 0
        self._kept_from = BarPosition()
        self._kept_clock_ms = 0
        self._whole.clear()
        self._folder.clear()


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
