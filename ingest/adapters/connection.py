"""Connections to an exchange, kept open for as long as a feed wants trades."""

import asyncio
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from math import inf
from random import Random
from typing import TypeVar
from urllib.parse import urlsplit

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidProxy,
    InvalidStatus,
    InvalidURI,
)

from ingest.adapters.adapter import (
    Adapter,
    AdapterFault,
    Frame,
    Piece,
    Reconnect,
    Reply,
    Told,
    TurnedAway,
)
from ingest.adapters.adapter_metrics import AdapterMetrics
from ingest.adapters.exchange_http import fetch, unreachable
from ingest.adapters.feed_log import FeedLog
from ingest.adapters.intake import Entry, Intake
from ingest.adapters.raw_tape import RawRecorder
from ingest.adapters.reconnect import Allowance, Backoff
from ingest.feed.supply import Arrivals
from ingest.trade import InvalidTrade
from tickthrottle_client.loopback import is_loopback

BATCH = 2_000
"""So many entries wait for the log before frames do."""

DELIVER_EVERY_S = 0.005
_SHOW_EVERY_S = 0.2
_SAY_EVERY_S = 1.0
_OPEN_TIMEOUT_S = 10.0
_CLOSE_TIMEOUT_S = 0.5
_QUEUED_FRAMES = (1_024, 256)
_KEY_REFUSED = {401, 403}
_RATE_LIMITS = {418, 429}
_PASSING = {408, *_RATE_LIMITS}
_TOO_BIG = 1009
_TOO_MUCH = 1008

log = structlog.get_logger()

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """What a feed from an exchange connects to, and how."""

    kind: type[Adapter]
    symbols: Sequence[str]
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    silence_s: float | None = None

    def hide(self, text: str) -> str:
        """Return a text without the keys that somebody may have put into it."""
        for secret in self.secrets.values():
            text = text.replace(secret, "...") if secret else text
        return text


class _Lost(Exception):
    """A connection that is to be opened again; says why."""

    def __init__(
        self, words: str, *, is_rate_limit: bool = False, asked_s: float = 0.0
    ) -> None:
        super().__init__(words)
        self.is_rate_limit = is_rate_limit
        self.asked_s = asked_s


@dataclass(slots=True)
class _Line:
    """One connection while it is open."""

    number: int
    socket: ClientConnection
    adapter: Adapter
    sending: Allowance
    heard_s: float
    """When a frame came; infinity while frames wait for the log."""
    was_silent: bool = False
    told: int = 0


class ExchangeFeed:
    """Hands over what comes from an exchange until the feed ends.

    Every connection has a task of its own; so has what hands over entries. Connections
    that end are opened again, later each time. ``AdapterFault`` ends the feed: for a
    key that is refused, or if the exchange cannot be reached at the start.
    """

    def __init__(
        self,
        plan: ExchangePlan,
        intake: Intake,
        arrivals: Arrivals,
        metrics: AdapterMetrics,
        feed_log: FeedLog,
        recorder: RawRecorder | None,
    ) -> None:
        self._plan = plan
        self._intake = intake
        self._arrivals = arrivals
        self._metrics = metrics
        self._recorder = recorder
        self._connects = Allowance(plan.kind.connects)
        self._batch: list[Entry] = []
        self._open = 0
        self._has_opened = False
        self._opened_s: dict[int, float] = {}
        self._log = feed_log
        self.reconnects = 0

    async def run(self) -> None:
        """Follow the exchange. Raises Ended once the feed has ended, AdapterFault."""
        symbols, most = self._plan.symbols, self._plan.kind.symbols_a_connection
        try:
            async with asyncio.TaskGroup() as tasks:
                for number, first in enumerate(range(0, len(symbols), most)):
                    part = symbols[first : first + most]
                    tasks.create_task(self._stay_connected(number, part))
                tasks.create_task(self._deliver())
        except BaseExceptionGroup as group:
            # The first of them ended the others.
            raise group.exceptions[0] from None
        finally:
            self._log.say_what_came()
            if self._batch:
                log.warning(
                    "trades in hand when the feed ended", trades=len(self._batch)
                )
            self._open = 0
            self._show()

    def _show(self) -> None:
        is_stuck = self._log.takes_nothing
        self._metrics.show(self._intake, self._open, self.reconnects, is_stuck)

    async def _deliver(self) -> None:
        shown_s = said_s = 0.0
        while True:
            await asyncio.sleep(DELIVER_EVERY_S)
            self._hand_over()
            now_s = time.monotonic()
            if now_s - shown_s >= _SHOW_EVERY_S:
                shown_s = now_s
                self._show()
            if now_s - said_s >= _SAY_EVERY_S:
                said_s = now_s
                self._log.say_news(now_s)

    def _hand_over(self) -> bool:
        """Hand over what has come; False while there is no room. Raises Ended."""
        if not self._arrivals.offer(self._batch):
            return False
        if self._batch:
            self._batch = []
        return True

    async def _stay_connected(self, number: int, symbols: Sequence[str]) -> None:
        backoff = Backoff(Random())
        while True:
            try:
                await self._connect(number, symbols)
            except _Lost as lost:
                now_s = time.monotonic()
                lasted_s = now_s - self._opened_s.pop(number, now_s)
                wait_s = backoff.wait_s(
                    lasted_s, is_rate_limit=lost.is_rate_limit, asked_s=lost.asked_s
                )
                log.warning(
                    f"{self._plan.kind.name}: connecting again",
                    reason=self._plan.hide(str(lost)),
                    connection=number,
                    wait_s=round(wait_s, 2),
                )
                self.reconnects += 1
                await asyncio.sleep(wait_s)

    async def _connect(self, number: int, symbols: Sequence[str]) -> None:
        """Open a connection and follow it to its end. Raises _Lost, AdapterFault."""
        await _take_turn(self._connects)
        kind = self._plan.kind
        adapter = _asked(kind, lambda: kind(symbols, self._plan.secrets))
        try:
            if kind.prepare is not Adapter.prepare:
                await _in_thread(lambda: _asked(kind, lambda: adapter.prepare(fetch)))
        except AdapterFault as fault:
            if fault.can_pass and (self._has_opened or fault.is_rate_limit):
                raise _Lost(str(fault), is_rate_limit=fault.is_rate_limit) from None
            raise
        socket = await self._open_socket(adapter)
        try:
            await self._follow(number, socket, adapter)
        finally:
            await socket.close()

    async def _open_socket(self, adapter: Adapter) -> ClientConnection:
        address = _asked(self._plan.kind, adapter.address)
        host = urlsplit(address).hostname or address
        try:
            return await connect(
                address,
                compression=None,
                max_size=adapter.max_frame_bytes,
                max_queue=_QUEUED_FRAMES,
                open_timeout=_OPEN_TIMEOUT_S,
                close_timeout=_CLOSE_TIMEOUT_S,
                user_agent_header="tickthrottle",
                proxy=None if is_loopback(host) else True,
            )
        except InvalidStatus as error:
            raise self._refused(host, error) from None
        except InvalidURI as error:
            raise AdapterFault(f"{address}: is no address of a WebSocket") from error
        except (InvalidProxy, ImportError) as error:
            # Not in its own words, which have the proxy's password.
            rule = f"the proxy in the environment cannot be used ({error.msg})"
            way = f"NO_PROXY={host} goes without it"
            raise AdapterFault(f"{host} cannot be reached: {rule}; {way}") from None
        except (OSError, InvalidHandshake, TimeoutError) as error:
            fault = unreachable(host, error)
            if self._has_opened:
                raise _Lost(str(fault)) from None
            raise fault from None

    def _refused(self, host: str, error: InvalidStatus) -> Exception:
        status, body = error.response.status_code, error.response.body or b""
        words = " ".join(body[:200].decode("utf-8", "replace").split())
        told = f"{host} refuses the connection with HTTP {status}"
        told += f": {words}" if words else ""
        if status in _KEY_REFUSED and self._plan.kind.secrets:
            return AdapterFault(f"{told}; is the key right?")
        if status in _PASSING or status >= 500:
            asked = error.response.headers.get("Retry-After", "")
            return _Lost(
                told,
                is_rate_limit=status in _RATE_LIMITS,
                asked_s=float(asked) if asked.isdecimal() and len(asked) < 7 else 0.0,
            )
        return _Lost(told) if self._has_opened else AdapterFault(told)

    async def _follow(
        self, number: int, socket: ClientConnection, adapter: Adapter
    ) -> None:
        kind = self._plan.kind
        line = _Line(
            number, socket, adapter, Allowance(kind.messages), time.monotonic()
        )
        self._has_opened = True
        self._opened_s[number] = line.heard_s
        self._open += 1
        if self._recorder is not None:
            self._recorder.opened(number, _now_us(), adapter.symbols)
        log.info(
            f"{kind.name}: connected", connection=number, symbols=len(adapter.symbols)
        )
        keeper = asyncio.create_task(self._keep_alive(line))
        try:
            for message in _asked(kind, lambda: [*adapter.subscribe()]):
                await self._send(line, message)
            async for frame in socket:
                await self._take(line, frame)
            raise _Lost(f"the exchange closed it ({_ending(socket)})")
        except ConnectionClosed:
            raise self._why(line) from None
        finally:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
            self._open -= 1

    def _why(self, line: _Line) -> _Lost:
        if line.was_silent:
            return _Lost(f"nothing came for {self._silence_s():g} s")
        sent = line.socket.protocol.close_sent
        if sent is not None and sent.code == _TOO_BIG:
            most = line.adapter.max_frame_bytes
            rule = f"has over {most} bytes; the connection was closed"
            self._intake.counts.frames += 1
            self._intake.refuse(InvalidTrade("too_large", "frame", "", rule))
            return _Lost(f"a frame had over {most} bytes")
        received = line.socket.protocol.close_rcvd
        is_limit = received is not None and received.code == _TOO_MUCH
        return _Lost(f"it broke ({_ending(line.socket)})", is_rate_limit=is_limit)

    async def _take(self, line: _Line, frame: Frame) -> None:
        line.heard_s = time.monotonic()
        now_us = _now_us()
        if self._recorder is not None:
            kept = _asked(self._plan.kind, lambda: line.adapter.without_secrets(frame))
            if isinstance(kept, str):
                kept = self._plan.hide(kept)
            self._recorder.received(line.number, now_us, kept)
        entries, others = self._intake.read(line.adapter, frame, now_us)
        self._batch += entries
        for piece in others:
            await self._obey(line, piece)
        if len(self._batch) >= BATCH:
            # Not the exchange is silent now.
            line.heard_s = inf
            # What makes room is another thread, which has no way into this loop.
            while not self._hand_over():  # noqa: ASYNC110
                await asyncio.sleep(DELIVER_EVERY_S)
            line.heard_s = time.monotonic()

    async def _obey(self, line: _Line, piece: Piece) -> None:
        if isinstance(piece, Reply):
            await self._send(line, piece.message)
        elif isinstance(piece, Told):
            line.told += 1
            self._log.exchange_says(piece.words, line.told)
        elif isinstance(piece, Reconnect):
            raise _Lost(piece.words, is_rate_limit=piece.is_rate_limit)
        elif isinstance(piece, TurnedAway):
            raise AdapterFault(f"the exchange refuses: {piece.words}")

    async def _send(self, line: _Line, message: str) -> None:
        await _take_turn(line.sending)
        # Of a connection that has ended, what came before is read first.
        with suppress(ConnectionClosed):
            await line.socket.send(message)

    async def _keep_alive(self, line: _Line) -> None:
        """Send what keeps a connection alive; end one that is silent."""
        adapter, silence_s = line.adapter, self._silence_s()
        pinged_s = time.monotonic()
        every_s = min(1.0, (silence_s or 4.0) / 4)
        while True:
            await asyncio.sleep(every_s)
            now_s = time.monotonic()
            if silence_s is not None and now_s - line.heard_s > silence_s:
                line.was_silent = True
                line.socket.transport.abort()
                return
            if adapter.ping is not None and now_s - pinged_s >= adapter.ping_every_s:
                pinged_s = now_s
                await self._send(line, adapter.ping)

    def _silence_s(self) -> float | None:
        return self._plan.silence_s or self._plan.kind.silence_s


def _asked(kind: type[Adapter], ask: Callable[[], T]) -> T:
    """Return what an adapter answers. What a user's own raises ends the feed."""
    try:
        return ask()
    except AdapterFault:
        raise
    except Exception as error:
        words = f"{kind.__name__} failed: {type(error).__name__}: {error}"
        raise AdapterFault(words) from error


async def _in_thread(work: Callable[[], None]) -> None:
    """Do what blocks without blocking; nobody waits for it when the feed ends."""
    done: Future[None] = Future()
    # From now on nobody can cancel it: the thread always says how it ended.
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, name="prepare", daemon=True).start()
    await asyncio.wrap_future(done)


async def _take_turn(allowance: Allowance) -> None:
    """Wait until something may be done once more, and count it as done."""
    wait_s = allowance.take_turn(time.monotonic())
    if wait_s:
        await asyncio.sleep(wait_s)


def _now_us() -> int:
    return time.time_ns() // 1_000


def _ending(socket: ClientConnection) -> str:
    code, reason = socket.close_code, socket.close_reason
    shown = f"code {code}" if code is not None else "without a word"
    return f"{shown}: {reason}" if reason else shown
