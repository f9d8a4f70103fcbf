"""The feed: source -> board -> hub, without a hole and without a repetition.

Subscribe first, then read the stored state, then apply what is newer. Whatever goes
wrong ends in the same two remedies: fill the hole from the window log, or reload.
"""

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Protocol

import structlog
from redis.backoff import ExponentialWithJitterBackoff
from redis.exceptions import RedisError

from gateway.protocol.market_instruments import MarketInstruments
from gateway.stream.board import Board, News, Position
from gateway.stream.counters import Counters
from gateway.stream.frames import Update, status_frame
from gateway.stream.hub import Hub
from gateway.upstream.decode import StoredState, decode_update
from gateway.upstream.stream_source import StreamSource
from gateway.upstream.window_log import REACH
from ingest.process.outage_reasons import OutageReasons
from ingest.process.redis_fault import in_words
from throttle.contract.lateness import is_late
from throttle.contract.snapshot import WindowSnapshot

HEAL_LIMIT = 256
"""A hole of more offsets is not filled window by window: a reload is cheaper."""

FIRST_LOOK_S = 3.0

log = structlog.get_logger()


class UpdateListener(Protocol):
    """Somebody who is told what the feed reads, and does nothing that takes time."""

    def follow(self, snapshot: WindowSnapshot) -> None:
        """Take the next update of the stream in."""

    def restart(self, position: Position) -> None:
        """Forget what came: the stream goes on behind ``position``."""


class StreamFollower:
    """Keeps the board equal to what the throttle has published and tells the hub.

    ``run`` lives until ``stop``; it outlasts any failure of the source and any message.
    """

    def __init__(
        self, source: StreamSource, board: Board, hub: Hub, counters: Counters
    ) -> None:
        self.source = source
        # Whether other instruments are served than when the stored state was read.
        self._is_relisted = False
        # Whether the board has publishes that Redis has lost. Their offsets come again,
        # and not only with what the board has: all is compared once Redis is ahead.
        self._is_ahead = False
        self._board = board
        self._hub = hub
        self._counters = counters
        self._stopping = asyncio.Event()
        self._has_looked = asyncio.Event()
        self._failures = 0
        self._reasons = OutageReasons()
        self._started_s = time.monotonic()
        self._heard_s: float | None = None
        # When trades came last; before the first, when we began to wait for them.
        self._traded_s = self._started_s
        self.is_job_starting: bool | None = None
        """Whether windows are missing because a throttle job is about to publish.

        None while nobody has looked: clients are told of no silence until then.
        """
        self._status = "live"
        self.listeners: list[UpdateListener] = []

    def silence_s(self, now_s: float) -> float | None:
        """Return the time since the last new window arrived, None if none ever did."""
        return None if self._heard_s is None else now_s - self._heard_s

    def quiet_s(self, now_s: float) -> float:
        """Return the time since a window with trades arrived, or since the start."""
        return now_s - self._traded_s

    @property
    def is_cut_off(self) -> bool:
        """Whether the connection to the source broke and is not restored yet."""
        return self._failures > 0

    def is_live(self, now_s: float) -> bool:
        """Say whether new windows arrive; quiet windows are published too."""
        silence_s = self.silence_s(now_s)
        return silence_s is not None and not self._is_late(silence_s)

    async def first_look(self) -> None:
        """Wait until the stored state was read, or twice could not be; not for long.

        A client that returns before it would be told that nothing is known.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LOOK_S):
                await self._has_looked.wait()

    def relist(self) -> None:
        """Have the board hold what is served now: its market has other instruments.

        That comes with the next window.
        """
        self._is_relisted = True

    def stop(self) -> None:
        """Make ``run`` return within ``POLL_S``; no read is cut off."""
        self._stopping.set()

    async def run(self) -> None:
        """Follow the published stream, connecting anew for as long as it takes."""
        backoff = ExponentialWithJitterBackoff(cap=2, base=0.05)
        while not self._stopping.is_set():
            try:
                await self._follow()
            except (RedisError, OSError, ValueError) as error:
                self._failures += 1
                # The first try may be too late only because all else begins just then.
                if self._failures > 1:
                    self._has_looked.set()
                self._counters.connects_failed += 1
                if self._reasons.is_news(in_words(error)):
                    log.warning("feed interrupted", error=in_words(error))
                self._tell_status()
                await self._pause(backoff.compute(self._failures))

    async def _follow(self) -> None:
        """Subscribe, load, apply messages; return after too long a silence."""
        try:
            # Subscribe before reading state: an overlap is harmless, a gap is not.
            await self.source.open()
            if self.source.place is None:
                await self._reload()
            await self._go_to(self.source.place)
            self._has_looked.set()
            if self._failures:
                log.info("feed restored", offset=self._board.position.offset)
                self._failures = 0
                self._reasons.end()
            self._tell_status()
            began_s = time.monotonic()
            while not self._stopping.is_set():
                message = await self.source.next()
                if message is None:
                    await self._go_to(self.source.place)
                else:
                    await self._receive(message)
                self._tell_status()
                now_s, heard_s = time.monotonic(), max(began_s, self._heard_s or 0)
                if self._is_late(now_s - heard_s) and self.source.may_be_dead(now_s):
                    return
        finally:
            await self.source.close()

    async def _go_to(self, place: Position | None) -> None:
        """Take in what brings the board to a place that the source has told."""
        here = self._board.position
        if place is None or place.epoch is None:
            return
        if place.epoch != here.epoch:
            await self._reload()
        elif place.offset > here.offset:
            await self._heal(place.offset)
            self._heard_s = time.monotonic()

    async def _receive(self, data: Any) -> None:
        snapshot = decode_update(data)
        here = self._board.position
        if snapshot is None:
            self._counters.updates_undecodable += 1
            log.warning("message not understood", bytes=len(data))
            await self._reload()
            return
        if snapshot.epoch != here.epoch:
            await self._reload()
        elif snapshot.offset <= here.offset:
            self._counters.updates_repeated += 1
            return
        elif self._is_relisted or self._is_ahead:
            # With the window, so that whoever asks over REST sees that it is news.
            await self._reload()
        elif snapshot.offset - snapshot.windows == here.offset:
            self._apply(snapshot)
        else:
            await self._heal(snapshot.offset)
        self._heard_s = time.monotonic()

    async def _heal(self, offset: int) -> None:
        """Fill the hole up to ``offset`` from the window log, or else reload."""
        here = self._board.position
        missing = range(here.offset + 1, offset + 1)
        windows: list[WindowSnapshot] = []
        if len(missing) <= HEAL_LIMIT:
            windows = await self.source.between(missing[0], missing[-1])
        is_whole = [w.offset for w in windows] == list(missing)
        if not is_whole or any(w.epoch != here.epoch for w in windows):
            await self._reload()
            return
        for snapshot in windows:
            self._apply(snapshot)
        self._counters.gaps_healed += 1
        log.info("gap healed", first=missing[0], last=missing[-1])

    async def _reload(self) -> None:
        """Read the whole stored state; tell clients what is news to them."""
        is_relisted, self._is_relisted = self._is_relisted, False
        stored = await self.source.state()
        self._counters.reloads += 1
        if stored is None:
            return
        if stored.unreadable:
            self._counters.updates_undecodable += len(stored.unreadable)
            log.warning("stored values not understood", keys=stored.unreadable[:10])
        recent = await self._read_parts(stored)
        stored = self._served(stored)
        board, position, here = self._board, stored.position, self._board.position
        if position.epoch == here.epoch and position.offset < here.offset:
            # Redis came back older than it was. The job, when it finds out, begins
            # another epoch; until then clients keep what they have.
            self._counters.states_older += 1
            self._is_ahead = True
            log.warning("stored state is older", offset=position.offset)
            return
        board.window_ms = stored.window_ms
        # What was stored before we first looked may be old; what came since is not.
        is_news = (position.epoch, position.offset) != (here.epoch, here.offset)
        if here.epoch is not None and is_news:
            self._heard_s = time.monotonic()
        if position.epoch != here.epoch:
            self._is_ahead = False
            board.replace(position, stored.values, stored.groups, recent)
            board.chain.restart(stored.chain)
            self._hub.restart()
            self._tell_restart(position)
            log.info("feed loaded", epoch=position.epoch, offset=position.offset)
        elif position.offset > here.offset or is_relisted:
            if is_relisted:
                board.retain(value.isin for value in stored.values)
            self._is_ahead = False
            news = board.catch_up(position, stored.values, stored.groups, recent)
            board.chain.restart(stored.chain)
            self._publish(news)
            self._tell_restart(position)

    async def _read_parts(self, stored: StoredState) -> list[WindowSnapshot]:
        """Return the newest windows where several jobs publish, oldest first.

        Of a group, what is stored is the last part of its last window alone.
        """
        if stored.jobs < 2:
            return []
        try:
            windows = await self.source.until(stored.position.offset, REACH)
        except ValueError:
            return []
        epoch = stored.position.epoch
        return [window for window in reversed(windows) if window.epoch == epoch]

    def _served(self, stored: StoredState) -> StoredState:
        """Return what of the stored state is served here."""
        instruments = self._hub.instruments
        if not isinstance(instruments, MarketInstruments):
            return stored
        values = [v for v in stored.values if instruments.has(v.isin)]
        groups = [g for g in stored.groups if not instruments.refusal(g.group.key)]
        return replace(stored, values=values, groups=groups)

    def _tell_restart(self, position: Position) -> None:
        for listener in self.listeners:
            listener.restart(position)

    def _apply(self, snapshot: WindowSnapshot) -> None:
        self._publish(self._board.apply(snapshot), snapshot)
        for listener in self.listeners:
            listener.follow(snapshot)

    def _publish(self, news: News, snapshot: WindowSnapshot | None = None) -> None:
        self._counters.rows_stale += news.stale
        self._counters.rows_held += news.held
        self._counters.groups_late += news.late
        if news.rows or news.held:
            self._traded_s = time.monotonic()
        board = self._board
        rows = news.windows, news.rows, board.numbers, news.groups
        update = Update(board.complete, *rows, news.first_new)
        self._hub.publish(update, snapshot, time.time_ns() // 1_000_000)

    def _tell_status(self) -> None:
        """Tell clients when windows stop arriving and when they arrive again."""
        now_s = time.monotonic()
        if self.is_live(now_s):
            status, reason = "live", "windows are arriving"
        elif self.is_job_starting is None or not self._is_late(now_s - self._started_s):
            return
        elif self.is_job_starting:
            status, reason = "starting", "the throttle job is starting"
        else:
            status, reason = "stale", self.silence_reason(now_s)
        if status == self._status:
            return
        if self._status == "live":
            log.warning("feed silent", reason=reason)
        self._status = status
        frame = status_frame(status, self._board.position.window, reason)
        self._hub.announce(frame, is_lasting=status != "live")

    def silence_reason(self, now_s: float) -> str:
        """Say in words for how long no window has come."""
        silence_s = self.silence_s(now_s)
        return (
            "no window yet" if silence_s is None else f"no window for {silence_s:.1f} s"
        )

    def _is_late(self, age_s: float) -> bool:
        return is_late(age_s * 1_000, self._board.window_ms)

    async def _pause(self, delay_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._stopping.wait()
