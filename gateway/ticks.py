"""A client of ``tick.v1`` for scripts, of the same shape as ``static/tick.js``::

    async with TickClient("ws://127.0.0.1:8000/v1/stream") as ticks:
        ticks.subscribe(["KR7005930003"], lambda item: print(item["price"]))
        await asyncio.sleep(60)

A callback gets an issue's newest item: first what is known, then every change. A lost
connection is made again, after a random delay, and resumes where it was. A script that
is slow gets fewer and newer updates: the gateway merges what it has not read yet.
"""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from decimal import Decimal
from random import random
from typing import Any, Literal, Self, TypeAlias

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from gateway.frames import PROTOCOL
from gateway.views import ALL

Item: TypeAlias = dict[str, Any]
"""A trade; ``price`` and ``size`` are Decimal, with every digit."""

State: TypeAlias = Literal["connecting", "live", "stale", "offline", "closed"]
Token: TypeAlias = str | Callable[[], Awaitable[str]]

BACKOFF_S = 0.5
BACKOFF_MOST_S = 30.0
TOO_MANY_MESSAGES_S = 30.0
SILENT_HEARTBEATS = 2.5
FINAL_CODES = frozenset({1000, 1003, 1007, 1008, 1009})
MAX_FRAME_BYTES = 2**24


def backoff_s(attempt: int, chance: float) -> float:
    """Return how long to wait before so many-th try; ``chance`` is from 0 to 1."""
    return float(chance * min(BACKOFF_MOST_S, BACKOFF_S * 2 ** min(attempt, 30)))


def is_final(code: int) -> bool:
    """Say whether a close code means not to come back."""
    return code in FINAL_CODES or 4_500 <= code < 5_000


def is_older(item: Item, known: Item) -> bool:
    """Say whether an item is older than another of the same issue and epoch."""
    return (item["time"], item["seq"]) < (known["time"], known["seq"])


def read_message(text: str | bytes) -> dict[str, Any]:
    """Parse a frame without losing a digit."""
    message: dict[str, Any] = json.loads(text, parse_float=Decimal)
    for item in message.get("data", ()):
        item["price"] = Decimal(item["price"])
        item["size"] = Decimal(item["size"])
    return message


def _nothing(*_: object) -> None:
    pass


class TickClient:
    """Follows the stream for as long as the ``async with`` block lasts.

    ``token`` is what the gateway asks for: text, or a function that gets a fresh one.
    ``on_state(state, text)`` hears connecting, live, stale (no windows arrive), offline
    (a new connection will be made) and closed (none will). ``on_reset()``: another
    epoch, everything known before is void. ``on_rejected(rejected)``: keys that were
    not accepted. ``on_message(message)``: every message, after it was taken in.

    ``items`` holds the newest item of each issue; up to ``position`` everything has
    arrived. An exception of a callback ends the client and is raised by the block.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        on_state: Callable[[State, str], object] = _nothing,
        on_reset: Callable[[], object] = _nothing,
        on_rejected: Callable[[list[dict[str, str]]], object] = _nothing,
        on_message: Callable[[dict[str, Any]], object] = _nothing,
    ) -> None:
        self.items: dict[str, Item] = {}
        self.position: dict[str, Any] | None = None
        self._url = url
        self._token = token
        self._on_state = on_state
        self._on_reset = on_reset
        self._on_rejected = on_rejected
        self._on_message = on_message
        self._listeners: dict[str, list[Callable[[Item], object]]] = {}
        self._asked: dict[int, list[str]] = {}
        self._ids = 0
        self._epoch: str | None = None
        self._is_complete = False
        self._is_snapshot_due = False
        self._heartbeat_s = 5.0
        self._attempt = 0
        self._noticed_s: float | None = None
        self._stale_reason: str | None = None
        self._renew_at_s: float | None = None
        self._outbox: asyncio.Queue[dict[str, Any]] | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to follow."""
        self._task = asyncio.create_task(self._run(), name=f"ticks of {self._url}")
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the connection for good."""
        assert self._task is not None
        if not self._task.done():
            self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    def subscribe(
        self, keys: Collection[str], callback: Callable[[Item], object]
    ) -> Callable[[], None]:
        """Have a callback called for keys; return the function that ends it."""
        wanted = [key for key in keys if key not in self._listeners]
        for key in keys:
            self._listeners.setdefault(key, []).append(callback)
            for isin in self.items if key == ALL else (key,):
                if isin in self.items:
                    callback(self.items[isin])
        self._ask(wanted)
        return lambda: self._unsubscribe(keys, callback)

    def _unsubscribe(
        self, keys: Collection[str], callback: Callable[[Item], object]
    ) -> None:
        dropped = []
        for key in keys:
            callbacks = self._listeners.get(key, [])
            if callback in callbacks:
                callbacks.remove(callback)
                if not callbacks:
                    del self._listeners[key]
                    dropped.append(key)
        if dropped:
            self._say({"op": "unsubscribe", "keys": dropped})
        for isin in [isin for isin in self.items if not self._is_watched(isin)]:
            del self.items[isin]

    def _is_watched(self, isin: str) -> bool:
        return isin in self._listeners or ALL in self._listeners

    async def _run(self) -> None:
        while True:
            self._on_state("connecting", "connecting")
            code = await self._follow()
            if code is not None and is_final(code):
                self._on_state("closed", f"closed ({code})")
                return
            delay_s = backoff_s(self._attempt, random())
            if self._noticed_s is not None:
                delay_s, self._noticed_s = self._noticed_s, None
            elif code == 4_429:
                delay_s = TOO_MANY_MESSAGES_S
            self._attempt += 1
            self._on_state("offline", f"reconnecting in {delay_s:.1f} s")
            await asyncio.sleep(delay_s)

    async def _follow(self) -> int | None:
        """Follow one connection to its end; return its close code, if it had one."""
        self._outbox = asyncio.Queue()
        self._asked.clear()
        self._is_snapshot_due = False
        self._stale_reason = None
        self._renew_at_s = None
        try:
            async with connect(
                self._url,
                subprotocols=[PROTOCOL],  # type: ignore[list-item]
                compression=None,
                max_size=MAX_FRAME_BYTES,
                # A dead line is noticed by its silence; the gateway sends the pings.
                ping_interval=None,
                close_timeout=1,
            ) as connection:
                await self._show_token()
                self._ask(list(self._listeners), self._resumable())
                speaking = asyncio.create_task(self._speak(connection))
                try:
                    await self._listen(connection)
                finally:
                    speaking.cancel()
        except ConnectionClosed as error:
            return error.rcvd.code if error.rcvd is not None else None
        except (OSError, TimeoutError, InvalidHandshake):
            return None
        finally:
            self._outbox = None
        return None

    def _resumable(self) -> dict[str, Any] | None:
        return self.position if self._is_complete else None

    async def _listen(self, connection: ClientConnection) -> None:
        while True:
            async with asyncio.timeout(SILENT_HEARTBEATS * self._heartbeat_s):
                text = await connection.recv()
            self._take(read_message(text))
            if self._renew_at_s is not None and time.monotonic() >= self._renew_at_s:
                self._renew_at_s = None
                await self._show_token()

    async def _speak(self, connection: ClientConnection) -> None:
        outbox = self._outbox
        assert outbox is not None
        with suppress(ConnectionClosed):
            while True:
                await connection.send(json.dumps(await outbox.get()))

    async def _show_token(self) -> None:
        if self._token is not None:
            token = self._token if isinstance(self._token, str) else await self._token()
            self._say({"op": "auth", "token": token})

    def _ask(self, keys: list[str], since: dict[str, Any] | None = None) -> None:
        if keys:
            message: dict[str, Any] = {"op": "subscribe", "keys": keys}
            number = self._say(message | ({"since": since} if since else {}))
            self._is_complete = False
            if number is not None:
                self._asked[number] = keys

    def _say(self, message: dict[str, Any]) -> int | None:
        """Send a message; without a connection nothing needs to be said."""
        if self._outbox is None:
            return None
        self._ids += 1
        self._outbox.put_nowait({"id": self._ids, **message})
        return self._ids

    def _take(self, message: dict[str, Any]) -> None:
        match message["type"]:
            case "welcome":
                self._heartbeat_s = message["heartbeat_ms"] / 1_000
            case "ack" if message["op"] == "subscribe":
                self._acknowledged(message)
            case "ack" if message["op"] == "auth":
                self._renew(message["expires"])
            case "error":
                self._refused(message)
            case "snapshot":
                self._enter(message["epoch"])
                self._put(message["data"])
                if message["final"]:
                    self._is_snapshot_due = False
                    self._hold(message)
            case "update":
                self._enter(message["epoch"])
                self._put(message["data"])
                self._hold(message)
            case "heartbeat":
                self._hold(message)
            case "status":
                is_live = message["feed"] == "live"
                self._stale_reason = None if is_live else message["message"]
                self._tell_feed()
            case "notice":
                self._noticed_s = message["reconnect_after_ms"] / 1_000
        self._on_message(message)

    def _acknowledged(self, message: dict[str, Any]) -> None:
        self._asked.pop(message.get("id", 0), None)
        self._attempt = 0
        self._is_snapshot_due = self._is_snapshot_due or bool(message["accepted"])
        if message["rejected"]:
            self._on_rejected(message["rejected"])
        self._tell_feed()

    def _renew(self, expires_us: int | None) -> None:
        """A newer token in time keeps the connection: at nine tenths of what is left.

        Heartbeats are what the time is looked at with.
        """
        if expires_us is not None and callable(self._token):
            left_s = expires_us / 1e6 - time.time()
            at_s = min(0.9 * left_s, left_s - 2 * self._heartbeat_s)
            self._renew_at_s = time.monotonic() + at_s

    def _refused(self, message: dict[str, Any]) -> None:
        """What came too fast is asked for again; what is too much is not."""
        keys = self._asked.pop(message.get("id", 0), None)
        if keys is None:
            return
        if message["code"] == "rate_limited":
            delay_s = message["retry_after_ms"] / 1_000
            number = message["id"]
            # Still asked for, so that no position is held without them.
            self._asked[number] = keys
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._ask_again, number, self._outbox)
        else:
            code, text = message["code"], message["message"]
            self._on_rejected([{"key": k, "code": code, "message": text} for k in keys])

    def _ask_again(self, number: int, outbox: object) -> None:
        if outbox is self._outbox:
            keys = self._asked.pop(number, [])
            self._ask([key for key in keys if key in self._listeners])

    def _enter(self, epoch: str | None) -> None:
        """Another epoch is another truth: nothing of the old one may stay."""
        if epoch is None or epoch == self._epoch:
            return
        if self._epoch is not None:
            self.items.clear()
            self._on_reset()
        self._epoch = epoch

    def _hold(self, message: dict[str, Any]) -> None:
        """A position holds once each key has had its snapshot."""
        if message["epoch"] is None or self._asked or self._is_snapshot_due:
            return
        self._is_complete = True
        self.position = {"epoch": message["epoch"], "offset": message["offset"]}

    def _put(self, items: list[Item]) -> None:
        for item in items:
            isin = item["isin"]
            known = self.items.get(isin)
            # A gateway that is behind may send what another one has sent before.
            if not self._is_watched(isin) or (known and is_older(item, known)):
                continue
            self.items[isin] = item
            for key in (isin, ALL):
                for callback in tuple(self._listeners.get(key, ())):
                    callback(item)

    def _tell_feed(self) -> None:
        if self._stale_reason is None:
            self._on_state("live", "live")
        else:
            self._on_state("stale", self._stale_reason)
