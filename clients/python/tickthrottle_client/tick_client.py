"""A client of ``tick.v1``, of the same shape as ``pages/tick.js``::

    async with TickClient("ws://127.0.0.1:8000/v1/stream") as ticks:
        async for item in ticks.follow("KR7005930003"):
            print(item["price"])

Who wants to be called has callbacks, ``ticks.subscribe(keys, callback)``. One gets an
instrument's newest item: first what is known, then every change, which stands for the
trades since (``traded``). A lost connection is made again, after a random delay, and
resumes where it was. A script that is slow gets fewer and newer updates: the gateway
merges what it has not read yet.
"""

import asyncio
import json
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterable
from contextlib import aclosing, suppress
from decimal import Decimal
from inspect import iscoroutinefunction
from itertools import chain
from random import random
from typing import Any, Literal, ParamSpec, Self, TypeAlias
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import (
    ConnectionClosed,
    InvalidHandshake,
    InvalidProxy,
    InvalidURI,
)
from websockets.frames import Close

from tickthrottle_client.bar_book import Bar, BarBook, read_bar
from tickthrottle_client.chain_v1 import ChainCheck, Verdict, lines_of_items
from tickthrottle_client.harmless_text import harmless
from tickthrottle_client.item_sums import (
    SUMS,
    WaitingItems,
    as_known,
    day_after,
    read_day,
    with_day,
)
from tickthrottle_client.listeners import Listeners
from tickthrottle_client.loopback import is_loopback
from tickthrottle_client.row_positions import (
    EVERY,
    HAVE_ROWS,
    RowPositions,
    wire_fields,
)
from tickthrottle_client.silent_keys import silence_of
from tickthrottle_client.status_book import (
    InstrumentStatus,
    StatusBook,
    read_status,
)
from tickthrottle_client.tick_v1 import (
    ALL,
    ALL_GROUPS,
    BARS,
    PROTOCOL,
    TRADES,
    CloseCode,
    is_final,
    is_group,
    is_instrument,
    read_decimal,
)
from tickthrottle_client.trade_book import TradeBook, TradeEntry, read_entry
from tickthrottle_client.trade_v1 import LATEST_TIME_US

Item: TypeAlias = dict[str, Any]
"""A trade, and what it stands for: ``trades``, and ``volume``, ``value``, ``high`` and
``low`` of them where its own ``size`` and ``price`` do not say it (``traded``); the
latter two only if one of them counts for the range. All but ``trades`` are Decimal,
with every digit.

``window`` is the end of the window in which it came, milliseconds since 1970; it is not
there in an item that was known before. ``day`` is the day so far as of the item
(``day_after``), with all that was traded since the day began; it is not there where
nobody knows it.

Or the figures of a group, which has ``group`` in place of ``isin``; ``volume``,
``value`` and ``mean_change_pct`` (None if no instrument has a previous close) are
Decimal.
"""

State: TypeAlias = Literal[
    "connecting", "live", "stale", "starting", "offline", "closed"
]
P = ParamSpec("P")
Token: TypeAlias = str | Callable[[], Awaitable[str]]

logger = logging.getLogger("tickthrottle_client")

BACKOFF_S = 0.5
BACKOFF_MOST_S = 30.0
TOO_MANY_MESSAGES_S = 30.0
SILENT_HEARTBEATS = 2.5
SILENT_WINDOWS = 3
SILENCE_SLACK_S = 1.5
MAX_FRAME_BYTES = 2**24
OF_LISTS = ("key_limit", "bad_request")
"""With these errors a list is refused of which some keys may be accepted."""
FIELDS = "fields:"
"""With this word such an error begins that is of the fields."""
MOST_REFUSALS = 15
"""So many in a row end the search for those; after 20 a gateway closes for good."""


def backoff_s(attempt: int, chance: float) -> float:
    """Return the wait before a try, counted from 0; ``chance`` is from 0 to 1."""
    return float(chance * min(BACKOFF_MOST_S, BACKOFF_S * 2 ** min(attempt, 30)))


def is_older(item: Item, known: Item) -> bool:
    """Say whether an item is older than another of the same instrument and epoch.

    One of a greater ``revision`` is newer in any case: a trade was taken back. Nobody
    knows of one whose fields do not say it.
    """
    if not all(name in one for one in (item, known) for name in ("time", "seq")):
        return bool(item.get("revision", 0) < known.get("revision", 0))
    return _order(item) < _order(known)


def _order(item: Item) -> tuple[int, int, int]:
    return item.get("revision", 0), item["time"], item["seq"]


def read_message(
    text: str | bytes, positions: RowPositions | None = None
) -> dict[str, Any]:
    """Parse a frame without losing a digit. Raises any Exception for a bad one.

    Rows by position become items; only those may leave out fields.
    """
    message: dict[str, Any] = json.loads(text, parse_float=Decimal)
    if positions is not None:
        positions.take(message)
    may_miss = positions is not None and positions.is_used
    kind = message["type"]
    known = message if kind in HAVE_ROWS else {}
    for item in known.get("data", ()):
        is_all = may_miss or "high" in item
        sums = SUMS if is_all else SUMS[:2] if "volume" in item else ()
        for name in ("price", "size", *sums):
            if name in item or not may_miss:
                item[name] = read_decimal(item[name])
        if "day" in item:
            read_day(item["day"], read_decimal)
        dated = {"time": 0, "seq": 0, **item} if may_miss else item
        numbers = *_order(dated), item.get("trades", 0)
        is_dated = 0 <= dated["time"] <= LATEST_TIME_US
        if (
            not is_dated
            or {*map(type, numbers)} != {int}
            or type(item["isin"]) is not str
        ):
            raise ValueError("an item must have an isin, a time and a seq")
    for figures in known.get("groups", ()):
        for name in ("volume", "value", "mean_change_pct"):
            if figures[name] is not None:
                figures[name] = read_decimal(figures[name])
    for bar in message["bars"] if kind == "bars" else ():
        read_bar(bar)
    if kind in ("trades", "statuses"):
        for entry in message["entries"]:
            (read_status if kind == "statuses" else read_entry)(entry)
    return message


def _kind_of(keys: Iterable[str]) -> str:
    """Return what keys of a subscription stand for: BARS, TRADES, or ALL for items."""
    first = next(iter(keys), ALL)
    return next((kind for kind in (BARS, TRADES) if first.startswith(kind)), ALL)


def _names(names: str | Collection[str]) -> list[str]:
    """Return each name once. Raises TypeError or ValueError for what is none."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"key {name!r:.80}: must be text, such as '005930'")
        if not name:
            raise ValueError("key '': must not be empty")
    return list(dict.fromkeys(names))


def _nothing(*_: object) -> None:
    pass


def _refuse(rejected: list[dict[str, str]]) -> None:
    first = rejected[0]
    raise TickError(f"key {first['key']!r} is not accepted: {first['message']}")


class TickError(Exception):
    """The stream cannot be followed; the message is a sentence that says why.

    Words of a gateway, which may be anybody's, cannot act on a terminal.
    """

    def __init__(self, sentence: str) -> None:
        super().__init__(harmless(sentence))


class TickClient:
    """Follows the stream for as long as the ``async with`` block lasts.

    A block whose stream cannot be followed is interrupted and raises TickError: if
    there is no gateway at the address (``waits``: one that comes later is waited for),
    if the gateway closes for good or says what is not ``tick.v1``, or if it does not
    accept a key and there is no ``on_rejected``. A connection that was there once is
    made again for as long as it takes.

    ``token`` is what the gateway asks for: text, or a function that gets a fresh one.
    With ``min_interval_ms`` there is at most one update per interval, with the newest
    values; the gateway grants whole windows, a minute at most. ``fields`` names the
    fields that items have beside ``isin``; without it they have all. Fewer are fewer
    bytes: rows come by position. Without ``time`` and ``seq`` an older item is not
    known as one, without ``volume``, ``value``, ``high`` and ``low`` nobody knows what
    several trades add up to.
    ``on_state(state, text)`` hears connecting, live, stale (no windows arrive, or
    nothing at all for three of them), starting (they will: the job that makes them
    starts), offline (a new connection will be made) and closed (none will).
    ``on_reset()``: another epoch, everything known before is void.
    ``on_rejected(rejected)``: keys that were not accepted, or that a newer token takes.
    They are asked for again after a reconnect, after a newer token if it was for that,
    and by whoever subscribes to them. ``on_nothing(keys)``: keys of instruments,
    markets or sectors that have no item a window after their snapshot, each key once;
    without it a warning of the logger ``tickthrottle_client`` names them.
    ``on_message(message)``: every message, after it was taken in.
    ``on_bars_missed()``: bars that were told before may have been amended meanwhile, or
    some are missing; REST has them.
    With ``verify`` the chain of windows is checked (docs/inspecting.md), and
    ``on_chain(verdict)`` hears of each step (``Verdict``); without it a warning of the
    logger names a break. Items need all fields then, so ``fields`` is refused.
    ``on_status(status)``: an instrument that is followed is halted, in an auction,
    trades again (``InstrumentStatus``): first what is current, then each at once.

    ``items`` holds the newest item of each instrument, ``groups`` the newest figures of
    each group, ``statuses`` the current ones of each instrument that has any; up to
    ``position`` everything has arrived. ``members`` has the
    instruments of each market and sector that is followed. ``window_ms`` is the length
    of a window, ``last_window`` the end of the newest one that has arrived, also an
    empty one, in milliseconds since 1970; None before the first.

    An exception of a callback interrupts the block and is raised by it. A callback for
    items may be an async function, any other may not (TypeError).
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token | None = None,
        waits: bool = False,
        min_interval_ms: int = 0,
        fields: Collection[str] | None = None,
        verify: bool = False,
        on_state: Callable[[State, str], object] = _nothing,
        on_reset: Callable[[], object] = _nothing,
        on_rejected: Callable[[list[dict[str, str]]], object] | None = None,
        on_nothing: Callable[[list[str]], object] | None = None,
        on_message: Callable[[dict[str, Any]], object] = _nothing,
        on_bars_missed: Callable[[], object] = _nothing,
        on_status: Callable[[InstrumentStatus], object] = _nothing,
        on_chain: Callable[[Verdict], object] | None = None,
    ) -> None:
        if verify and fields is not None:
            raise ValueError("fields: verify=True needs all of them: leave fields out")
        self.items: dict[str, Item] = {}
        self.groups: dict[str, Item] = {}
        self.statuses = StatusBook()
        self.position: dict[str, Any] | None = None
        self.members: dict[str, tuple[str, ...]] = {}
        self.window_ms = 2_000
        self.last_window: int | None = None
        self._url = url
        self._token = token
        self._may_be_away = waits
        self._min_interval_ms = min_interval_ms
        self._fields = [] if verify else wire_fields(fields)
        self._chain = ChainCheck() if verify else None
        self._is_part = False
        self._on_chain = self._own(on_chain or self._warn_of_break)
        self._positions = RowPositions()
        self._on_state = self._own(on_state)
        self._on_reset = self._own(on_reset)
        self._on_rejected = self._own(on_rejected or _refuse)
        self._on_nothing = self._own(on_nothing or self._warn)
        self._on_message = self._own(on_message)
        self._on_bars_missed = self._own(on_bars_missed)
        self._on_status = self._own(on_status)
        self._bars = BarBook()
        self._trades = TradeBook()
        self._is_bar_snapshot_due = False
        self._is_bar_return = False
        self._listeners = Listeners()
        # Codes and their ISINs, as the gateway has told, and the other way round.
        self._isins: dict[str, str] = {}
        self._codes: dict[str, str] = {}
        # The markets and sectors that each instrument is followed by, and those that
        # are called otherwise since they were asked for.
        self._followed_by: dict[str, list[str]] = {}
        self._renames: dict[str, str] = {}
        self._instruments: str | None = None
        # Keys of subscriptions without an answer, each of one kind, by their numbers.
        self._asked: dict[int, Collection[str]] = {}
        # Parts of lists that were refused, to be asked for one after the other, and how
        # many refusals came in a row.
        self._apart: list[Collection[str]] = []
        self._refusals = 0
        # Keys that somebody listens to and the gateway does not hold, and why not.
        self._rejected: dict[str, str] = {}
        # Keys whose first snapshot is complete: whether it said nothing was looked at.
        self._looked_at: set[str] = set()
        self._is_look_due = False
        # What was said beside them and has no answer: keys to drop, the newest token.
        self._dropped: dict[int, Collection[str]] = {}
        self._shown: int | None = None
        self._ids = 0
        self._epoch: str | None = None
        self._is_complete = False
        self._is_snapshot_due = False
        self._heartbeat_s = 5.0
        self._attempt = 0
        self._noticed_s: float | None = None
        self._stale_reason: str | None = None
        self._silence: Literal["stale", "starting"] = "stale"
        self._renew_at_s: float | None = None
        self._outbox: asyncio.Queue[dict[str, Any]] | None = None
        self._task: asyncio.Task[None] | None = None
        self._block: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        self._followers: set[asyncio.Event] = set()
        # Those that await an async callback, or the item of a key that has none.
        self._awaiting: set[asyncio.Task[None]] = set()
        # What a callback has raised: neither the connection's fault nor a message's.
        self._failure: Exception | None = None

    async def __aenter__(self) -> Self:
        self._block = asyncio.current_task()
        self._task = asyncio.create_task(self._run(), name=f"ticks of {self._url}")
        self._task.add_done_callback(self._interrupt)
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the connection for good. Raises what has ended it before."""
        block, self._block = self._block, None
        assert self._task is not None
        assert block is not None
        for task in (self._task, *self._awaiting):
            task.cancel()
        if self._is_interrupted and block.uncancel():
            # Somebody else has cancelled the block as well, and wins.
            return
        if self._awaiting:
            await asyncio.wait([*self._awaiting])
        with suppress(asyncio.CancelledError):
            await self._task
        if self._failure is not None:
            raise self._failure

    def _interrupt(self, task: asyncio.Task[None]) -> None:
        """Nothing comes any more: nobody must wait for it."""
        self._awaiting.discard(task)
        for follower in self._followers:
            follower.set()
        if task.cancelled() or not task.exception() or self._is_interrupted:
            return
        if self._block is not None:
            self._is_interrupted = True
            self._block.cancel()

    def _own(self, callback: Callable[P, object]) -> Callable[P, None]:
        if iscoroutinefunction(callback):
            # Its coroutines would be thrown away, with no more than a warning.
            raise TypeError(
                f"callback {callback!r:.80}: nobody awaits an async function here, but "
                "for items; give a plain one, which may call asyncio.create_task"
            )

        if not callable(callback):
            raise TypeError(f"callback {callback!r:.80}: must be a function")

        def call(*args: P.args, **kwargs: P.kwargs) -> None:
            try:
                callback(*args, **kwargs)
            except Exception as error:
                self._failure = error
                raise

        return call

    def subscribe(
        self, keys: str | Collection[str], callback: Callable[[Item], object]
    ) -> Callable[[], None]:
        """Have a callback called for a key, or several; return what ends it.

        Keys are ISINs, codes of the instrument table (``005930``), markets and sectors
        (``market:KOSPI``, ``sector:…``), or ``*``. A market or sector stands for the
        instruments that the table says, while that changes, too. Groups
        (``group:market:KOSPI``, ``group:sector:…``, ``group:*``) are the figures of a
        market or sector, once per window.

        An item that was known before has ``trades`` 0, so the trades of all items that
        a callback gets are those since it was subscribed.

        An async function is awaited for one item after the other, and gets what
        ``follow`` yields; it can be given inside the block only.
        """
        keys = _names(keys)
        if iscoroutinefunction(callback):
            return self._await_each(keys, callback)
        callback = self._own(callback)
        # Asked for first: others may wait for it, whatever becomes of this callback.
        self._ask_items(self._unheld(keys, self._listeners.add(keys, callback)))
        for key in keys:
            every = filter(is_instrument, tuple(self.items))
            for isin in every if key == ALL else self._isins_of(key):
                if isin in self.items:
                    callback(as_known(self.items[isin]))
            for group in tuple(self.groups):
                if key in (group, ALL_GROUPS):
                    callback(self.groups[group])
        return lambda: self._unsubscribe(keys, callback)

    async def follow(
        self, *keys: str, timeout_s: float | None = None
    ) -> AsyncGenerator[Item, None]:
        """Yield the items of some keys as they come, for ``async for``; any number.

        First what is known, then every change. Of an instrument whose item was not
        taken yet only the newest is kept, and stands for the trades of both: who is
        slow gets fewer and newer items, and no trade twice. It ends when nothing has
        come for ``timeout_s``. Raises what ends the block, also in another task than
        the block's.
        """
        waiting, is_there = WaitingItems(), asyncio.Event()

        def put(item: Item) -> None:
            waiting.put(item)
            is_there.set()

        end = self.subscribe(keys, put)
        self._followers.add(is_there)
        try:
            while True:
                try:
                    async with asyncio.timeout(timeout_s):
                        # Whatever ends beside it wakes it as well.
                        while not waiting and not self._is_over:
                            is_there.clear()
                            await is_there.wait()
                except TimeoutError:
                    return
                while waiting:
                    yield waiting.take()
                if self._is_over:
                    break
        finally:
            self._followers.discard(is_there)
            end()
        if self._failure is not None:
            raise self._failure
        if self._task is not None and not self._task.cancelled():
            self._task.result()

    @property
    def _is_over(self) -> bool:
        return self._task is None or self._task.done()

    def _await_each(
        self, keys: list[str], callback: Callable[[Item], Awaitable[object]]
    ) -> Callable[[], None]:
        async def go() -> None:
            async with aclosing(self.follow(*keys)) as items:
                async for item in items:
                    try:
                        await callback(item)
                    except Exception as error:
                        self._failure = error
                        raise

        task = asyncio.create_task(go(), name=f"an async callback of {self._url}")
        self._awaiting.add(task)
        task.add_done_callback(self._interrupt)

        def end() -> None:
            task.cancel()

        return end

    def bars(
        self,
        interval: str,
        instruments: str | Collection[str],
        callback: Callable[[Bar], object],
        *,
        last: int = 1,
    ) -> Callable[[], None]:
        """Have a callback called for bars; return the function that ends it.

        ``interval`` is ``1m``, ``5m``, ``15m``, ``1h`` or ``1d``; instruments are
        ISINs, codes of the instrument table, or ``*``. First come the newest ``last``
        bars of each instrument, then each change: the open bar, the same closed, and
        amended by late trades. No bar goes back.
        """
        callback = self._own(callback)
        keys = [f"{BARS}{interval}:{name}" for name in _names(instruments)]
        new = dict.fromkeys(self._bars.add(keys, callback, last))
        self._ask_bars(self._unheld(keys, new))
        for bar in self._bars.known(key for key in keys if key not in new):
            callback(bar)
        return lambda: self._end(self._bars, keys, callback)

    def trades(
        self,
        instruments: str | Collection[str],
        callback: Callable[[TradeEntry], object],
    ) -> Callable[[], None]:
        """Have a callback called for every trade; return the function that ends it.

        Of five instruments at most, by ISIN or code, from now on, in the order of the
        trade log. What is missing is told (``TradeEntry``).
        """
        callback = self._own(callback)
        keys = [TRADES + name for name in _names(instruments)]
        self._ask(self._unheld(keys, self._trades.add(keys, callback)))
        return lambda: self._end(self._trades, keys, callback)

    def _end(
        self, book: Listeners, keys: Collection[str], callback: Callable[..., object]
    ) -> None:
        self._drop(book.remove(keys, callback))

    def _ask_items(self, keys: Collection[str], **positions: Any) -> None:
        if keys:
            self._is_complete = False
            self._ask(keys, **positions)

    def _ask_bars(
        self, keys: Collection[str], since: dict[str, Any] | None = None
    ) -> None:
        for last, some in self._bars.wanted(keys).items():
            if since is None:
                self._bars.position = None
            self._ask(some, last=last, bars_since=since)

    def _ask(self, keys: Collection[str], **options: Any) -> None:
        """Subscribe to keys of one kind, with the options that have a value."""
        if not keys:
            return
        # The newest one decides: interval and fields have to be in each.
        options["min_interval_ms"] = self._min_interval_ms
        options["fields"] = self._fields
        if self._chain is not None and _kind_of(keys) == ALL:
            place = self._chain.place
            options["chain"] = True if place is None else place.offset
        given = {name: value for name, value in options.items() if value}
        for key in keys:
            self._rejected.pop(key, None)
        number = self._say({"op": "subscribe", "keys": list(keys), **given})
        if number is not None:
            self._asked[number] = keys

    def _ask_again(self, keys: Collection[str]) -> bool:
        """Ask for those keys that are still listened to; say whether any is."""
        wanted = [key for key in keys if any(key in book for book in self._books)]
        self._ask_items([key for key in wanted if key in self._listeners])
        self._ask_bars(wanted)
        self._ask([key for key in wanted if key in self._trades])
        return bool(wanted)

    def _ask_apart(self) -> None:
        """Ask for the next part of what was refused as a list."""
        while self._apart and not self._ask_again(self._apart.pop()):
            pass

    def _unheld(self, keys: Collection[str], new: Collection[str]) -> list[str]:
        """Return which keys to ask for: new ones, and those that were refused before.

        Whoever comes later is told as well.
        """
        return [*new, *filter(self._rejected.__contains__, keys)]

    def _awaits(self, kind: str) -> bool:
        """Tell whether a subscription to keys of a kind has no answer yet."""
        waiting = (*self._asked.values(), *self._apart)
        return any(_kind_of(keys) == kind for keys in waiting)

    def _drop(self, keys: Collection[str]) -> None:
        """Unsubscribe from keys that nobody listens to, by another name either."""
        keys = [key for key in keys if not self._is_held(key)]
        for key in keys:
            self._rejected.pop(key, None)
        if self._chain is not None and ALL in keys:
            self._chain.takes_all = False
        if keys and (number := self._say({"op": "unsubscribe", "keys": [*keys]})):
            self._dropped[number] = keys

    def _unsubscribe(
        self, keys: Collection[str], callback: Callable[[Item], object]
    ) -> None:
        dropped = []
        for key in map(self._renamed, keys):
            if self._listeners.remove([key], callback):
                self._set_members(key, ())
                dropped.append(key)
        self._drop(dropped)
        self._forget_unwatched()

    def _forget_unwatched(self) -> None:
        for isin in [isin for isin in self.items if not self._is_watched(isin)]:
            del self.items[isin]
        for key in [key for key in self.groups if not self._is_followed(key)]:
            del self.groups[key]
        names = (*self._listeners, *self._codes)
        self.statuses.forget(
            lambda isin: (
                self._is_watched(isin) or any(n.startswith(isin) for n in names)
            )
        )

    def _is_followed(self, group: str) -> bool:
        return group in self._listeners or ALL_GROUPS in self._listeners

    def _is_watched(self, isin: str) -> bool:
        if ALL in self._listeners and is_instrument(isin):
            return True
        return self._is_named(isin) or isin in self._followed_by

    def _is_named(self, isin: str) -> bool:
        return isin in self._listeners or self._codes.get(isin) in self._listeners

    @property
    def _books(self) -> tuple[Listeners, ...]:
        return self._listeners, self._bars, self._trades

    def _is_held(self, key: str) -> bool:
        return bool(self._names_of(self._isins.get(key, key)))

    def _names_of(self, key: str) -> list[str]:
        """Return the names by which a key of the gateway is listened to."""
        names = (key, self._codes.get(key, key))
        return [n for n in dict.fromkeys(names) if any(n in b for b in self._books)]

    def _isins_of(self, key: str) -> tuple[str, ...]:
        return self.members.get(key) or (self._isins.get(key, key),)

    def _renamed(self, key: str) -> str:
        while key not in self._listeners and key in self._renames:
            key = self._renames[key]
        return key

    def _regroup(self, message: dict[str, Any]) -> None:
        """Some keys stand for other instruments from now on, or have other names."""
        self._instruments = message["instruments"]
        for old, new in message["renamed"].items():
            self._renames[old] = new
            self._renames.pop(new, None)
            callbacks = self._listeners.pop(old, [])
            self._set_members(old, ())
            if callbacks:
                self._listeners.setdefault(new, []).extend(callbacks)
            elif new not in self._listeners:
                # It was given up before we knew what it is called now.
                self._drop([new])
        for key, isins in message["members"].items():
            if key in self._listeners:
                known = self.items.keys() & set(isins).difference(self._isins_of(key))
                self._set_members(key, isins)
                # What is new to the key may be known by another one.
                for isin in sorted(known):
                    self._listeners.tell([key], as_known(self.items[isin]))
        self._forget_unwatched()

    def _set_members(self, key: str, isins: Collection[str]) -> None:
        for isin in self.members.pop(key, ()):
            self._followed_by[isin].remove(key)
            if not self._followed_by[isin]:
                del self._followed_by[isin]
        if isins:
            self.members[key] = tuple(isins)
            for isin in isins:
                self._followed_by.setdefault(isin, []).append(key)

    async def _run(self) -> None:
        while True:
            self._on_state("connecting", "connecting")
            close = await self._follow()
            code = None if close is None else close.code
            if close is not None and is_final(close.code):
                self._on_state("closed", f"closed ({code})")
                reason = close.reason or "no reason given"
                raise TickError(f"closed by {self._address}: {reason} ({code})")
            delay_s = backoff_s(self._attempt, random())
            if self._noticed_s is not None:
                delay_s, self._noticed_s = self._noticed_s, None
            elif code == CloseCode.TOO_MANY_MESSAGES:
                delay_s = TOO_MANY_MESSAGES_S
            self._attempt += 1
            self._on_state("offline", f"reconnecting in {delay_s:.1f} s")
            await asyncio.sleep(delay_s)

    async def _follow(self) -> Close | None:
        """Follow one connection to its end; return how it was closed, if it was."""
        self._asked.clear()
        self._dropped.clear()
        self._apart.clear()
        self._refusals = 0
        self._positions = RowPositions()
        if self._chain is not None:
            self._chain.takes_all = False
            self._chain.lose()
        self._trades.lose()
        self._is_snapshot_due = self._is_bar_snapshot_due = False
        self._stale_reason = None
        self._renew_at_s = None
        try:
            async with await self._connect() as connection:
                self._may_be_away = True
                token = await self._newest_token()
                # From here on: what is subscribed to before is asked for below, once.
                self._outbox = asyncio.Queue()
                self._show_token(token)
                since = self.position if self._is_complete else None
                # What was refused has no position, and may spoil the list again.
                rejected = list(self._rejected)
                items, bars, trades = (
                    [key for key in book if key not in self._rejected]
                    for book in self._books
                )
                told = self.statuses.position
                self._ask_items(items, since=since, statuses_since=told)
                self._is_bar_return = self._bars.has_bars
                self._ask_bars(bars, self._bars.position)
                self._ask(trades)
                self._ask_again(rejected)
                speaking = asyncio.create_task(self._speak(connection))
                try:
                    await self._listen(connection)
                finally:
                    speaking.cancel()
        except ConnectionClosed as error:
            return error.rcvd
        except InvalidURI as error:
            raise TickError(str(error)) from error
        except (OSError, TimeoutError, InvalidHandshake) as error:
            if error is self._failure:
                raise
            if not self._may_be_away:
                sentence = f"no gateway answers at {self._address}: {error}"
                raise TickError(sentence) from error
            return None
        finally:
            self._outbox = None
        return None

    async def _connect(self) -> ClientConnection:
        host = urlsplit(self._url).hostname or ""
        try:
            return await connect(
                self._url,
                subprotocols=[PROTOCOL],  # type: ignore[list-item]
                compression=None,
                max_size=MAX_FRAME_BYTES,
                # A dead line is noticed by its silence; the gateway sends the pings.
                ping_interval=None,
                close_timeout=1,
                # Elsewhere, through that of the environment if it names one.
                proxy=None if is_loopback(host) else True,
            )
        except (InvalidProxy, ImportError) as error:
            # Not in its own words, which have the proxy's password.
            reason = error.msg
            raise TickError(
                f"no way to {self._address}: the proxy in the environment cannot be "
                f"used ({reason}); NO_PROXY={host} goes without it"
            ) from None

    @property
    def _address(self) -> str:
        return self._url.partition("?")[0]

    async def _listen(self, connection: ClientConnection) -> None:
        while True:
            text = await self._receive(connection)
            try:
                message = read_message(text, self._positions)
                self._take(message)
                self._check_chain(text, message)
            except Exception as error:
                if error is self._failure:
                    raise
                sentence = f"{self._address} says what is not {PROTOCOL}"
                raise TickError(f"{sentence}: {error!r:.120}") from error
            if self._renew_at_s is not None and time.monotonic() >= self._renew_at_s:
                self._renew_at_s = None
                self._show_token(await self._newest_token())

    async def _receive(self, connection: ClientConnection) -> str | bytes:
        """Return what comes next; say so if nothing comes for three windows.

        Raises TimeoutError once the line is taken for dead.
        """
        dead_s = SILENT_HEARTBEATS * self._heartbeat_s
        # Quiet windows are told by heartbeats only.
        quiet_s = max(SILENT_WINDOWS * self.window_ms / 1_000, self._heartbeat_s)
        quiet_s = min(dead_s, quiet_s + SILENCE_SLACK_S)
        try:
            async with asyncio.timeout(quiet_s):
                return await connection.recv()
        except TimeoutError:
            if self.last_window is None or quiet_s == dead_s:
                raise
        self._on_state("stale", f"nothing came for {quiet_s:.1f} s")
        async with asyncio.timeout(dead_s - quiet_s):
            text = await connection.recv()
        self._tell_feed()
        return text

    async def _speak(self, connection: ClientConnection) -> None:
        outbox = self._outbox
        assert outbox is not None
        with suppress(ConnectionClosed):
            while True:
                await connection.send(json.dumps(await outbox.get()))

    async def _newest_token(self) -> str | None:
        if self._token is None or isinstance(self._token, str):
            return self._token
        return await self._token()

    def _show_token(self, token: str | None) -> None:
        if token is not None:
            self._shown = self._say({"op": "auth", "token": token})

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
                self.statuses.begin()
                self._heartbeat_s = message["heartbeat_ms"] / 1_000
                self.window_ms = message.get("window_ms", self.window_ms)
                self._is_part = "market" in message
            case "ack" if message["op"] == "subscribe":
                self._acknowledged(message)
            case "ack" if message["op"] == "auth":
                self._renewed(message)
            case "ack":
                self._dropped.pop(message.get("id", 0), None)
            case "error":
                self._refused(message)
            case "snapshot":
                self._enter(message["epoch"])
                self._put(message)
                if message["final"]:
                    self._is_snapshot_due = False
                    self._hold(message)
                    self._is_look_due = True
                    self._look_for_silence()
            case "update":
                self._enter(message["epoch"])
                self._put(message)
                self._hold(message)
            case "bars":
                self._take_bars(message)
            case "trades":
                self._trades.take(message)
            case "statuses":
                for status in self.statuses.take(message):
                    self._on_status(status)
            case "heartbeat":
                self._hold(message)
            case "status":
                feed = message["feed"]
                self._silence = "starting" if feed == "starting" else "stale"
                self._stale_reason = None if feed == "live" else message["message"]
                self._tell_feed()
            case "members":
                self._regroup(message)
            case "notice":
                self._noticed_s = message["reconnect_after_ms"] / 1_000
        self._on_message(message)

    def _check_chain(self, text: str | bytes, message: dict[str, Any]) -> None:
        check, kind = self._chain, message["type"]
        if check is None or kind not in ("snapshot", "update", "heartbeat"):
            return
        is_all = check.takes_all and kind == "update"
        verdict = check.take(
            kind,
            (message["epoch"], message["offset"], message["window"]),
            message.get("merged", 1),
            message.get("chain", ()),
            lines_of_items(str(text)) if is_all else (),
        )
        if verdict is not None:
            self._on_chain(verdict)

    def _warn_of_break(self, verdict: Verdict) -> None:
        if verdict.state == "broken":
            logger.warning("the chain of windows is broken: %s", harmless(str(verdict)))

    def _take_bars(self, message: dict[str, Any]) -> None:
        is_missed = False
        if message.get("final"):
            # One that nobody asked for is one after a hole.
            is_new = self._is_bar_snapshot_due and not self._is_bar_return
            is_missed = not message["resumed"] and not is_new
            self._is_bar_snapshot_due = self._is_bar_return = False
        is_waiting = self._awaits(BARS) or self._is_bar_snapshot_due
        self._bars.take(message, is_waiting=is_waiting)
        if is_missed:
            self._on_bars_missed()

    def _acknowledged(self, message: dict[str, Any]) -> None:
        kind = _kind_of(self._asked.pop(message.get("id", 0), ()))
        self._attempt = self._refusals = 0
        codes = message.get("codes", {})
        self._bars.name(codes)
        self._trades.name(codes)
        for code, name in codes.items():
            self._isins[code] = name
            self._codes[name] = code
        if kind == BARS:
            self._is_bar_snapshot_due |= bool(message["accepted"])
        elif kind == ALL:
            if self._chain is not None and ALL in message["accepted"]:
                # What comes before its snapshot is of other keys.
                self._chain.takes_all = not self._is_part
                self._chain.lose()
            for key, isins in message.get("members", {}).items():
                self._set_members(key, isins)
            self._instruments = message.get("instruments", self._instruments)
            self._is_snapshot_due |= bool(message["accepted"])
        self._reject(message["rejected"])
        self._tell_feed()
        self._ask_apart()
        self._look_for_silence()

    def _reject(self, rejected: list[dict[str, str]]) -> None:
        """Tell which keys are not held, and remember it."""
        self._rejected.update((one["key"], one["code"]) for one in rejected)
        if rejected:
            self._on_rejected(rejected)

    def _renewed(self, message: dict[str, Any]) -> None:
        """Another token holds: tell what it takes, ask for what it may give."""
        again = [key for key, code in self._rejected.items() if code == "not_allowed"]
        self._reject(
            [
                {**one, "key": name}
                for one in message["rejected"]
                for name in self._names_of(one["key"])
            ]
        )
        self._renew(message["expires"])
        self._ask_again(again)

    def _renew(self, expires_us: int | None) -> None:
        """A newer token in time keeps the connection: at nine tenths of what is left.

        Heartbeats are what the time is looked at with.
        """
        if expires_us is not None and callable(self._token):
            left_s = expires_us / 1e6 - time.time()
            at_s = min(0.9 * left_s, left_s - 2 * self._heartbeat_s)
            self._renew_at_s = time.monotonic() + at_s

    def _refused(self, message: dict[str, Any]) -> None:
        """What came too fast is said again; of a list that is refused each half.

        One after the other: so few refusals come in a row, and the rest is held.
        """
        number, code = message.get("id", 0), message["code"]
        if code == "rate_limited":
            # Keys are still asked for, so that no position is held without them.
            delay_s = message["retry_after_ms"] / 1_000
            loop = asyncio.get_running_loop()
            loop.call_later(delay_s, self._say_again, number, self._outbox)
            if number == self._shown:
                self._renew_at_s = time.monotonic() + delay_s
        elif number in self._asked and code == "field_limit":
            # Others have so many sets of fields that there is room for all alone.
            self._fields = [EVERY]
            self._apart.append(self._asked.pop(number))
            self._ask_apart()
        elif number in self._asked:
            keys = [*self._asked.pop(number)]
            self._refusals += 1
            # Fields are refused for any of the keys.
            is_of_list = code in OF_LISTS and not message["message"].startswith(FIELDS)
            if len(keys) > 1 and is_of_list and self._refusals < MOST_REFUSALS:
                half = len(keys) // 2
                self._apart += keys[half:], keys[:half]
            else:
                if self._refusals >= MOST_REFUSALS:
                    keys += chain.from_iterable(reversed(self._apart))
                    self._apart.clear()
                text = message["message"]
                self._reject([{"key": k, "code": code, "message": text} for k in keys])
                self._tell_feed()
            self._ask_apart()
            self._look_for_silence()

    def _say_again(self, number: int, outbox: object) -> None:
        if outbox is self._outbox:
            self._drop(self._dropped.pop(number, ()))
            self._apart.append(self._asked.pop(number, ()))
            self._ask_apart()

    def _enter(self, epoch: str | None) -> None:
        """Another epoch is another truth: nothing of the old one may stay."""
        if epoch is None or epoch == self._epoch:
            return
        if self._epoch is not None:
            self.items.clear()
            self.groups.clear()
            self._on_reset()
        self._epoch = epoch

    def _hold(self, message: dict[str, Any]) -> None:
        """A position holds once each key has had its snapshot."""
        if message["window"] is not None:
            self.last_window = max(message["window"], self.last_window or 0)
        if message["epoch"] is None or self._awaits(ALL) or self._is_snapshot_due:
            return
        self._is_complete = True
        self.position = {"epoch": message["epoch"], "offset": message["offset"]}
        if self.members:
            self.position["instruments"] = self._instruments

    def _look_for_silence(self) -> None:
        """Have keys without an item told, if they have none a window later either.

        What is asked for has to be answered by then, and to be there.
        """
        if not self._is_look_due or self._awaits(ALL) or self._is_snapshot_due:
            return
        self._is_look_due = False
        new = self._listeners.keys() - self._looked_at - self._rejected.keys()
        self._looked_at |= new
        silent = [key for key in self._listeners if key in new and self._is_silent(key)]
        if silent:
            name = f"keys without an item of {self._url}"
            task = asyncio.create_task(self._tell_silence(silent), name=name)
            self._awaiting.add(task)
            task.add_done_callback(self._interrupt)

    async def _tell_silence(self, keys: list[str]) -> None:
        await asyncio.sleep(self.window_ms / 1_000)
        held = self._listeners.keys() - self._rejected.keys()
        if silent := [key for key in keys if key in held and self._is_silent(key)]:
            self._on_nothing(silent)

    def _is_silent(self, key: str) -> bool:
        if key == ALL:
            return not any(map(is_instrument, self.items))
        return not is_group(key) and self.items.keys().isdisjoint(self._isins_of(key))

    def _warn(self, keys: list[str]) -> None:
        logger.warning("%s", silence_of(keys, has_begun=self.last_window is not None))

    def _put(self, message: dict[str, Any]) -> None:
        for item in message["data"]:
            isin = item["isin"]
            if not self._is_watched(isin):
                continue
            known = self.items.get(isin)
            day = day_after(item, known and known.get("day"))
            # A gateway that is behind may send what another one has sent before. Its
            # days are as old, and what it sends from then on adds to those.
            if known and is_older(item, known):
                self.items[isin] = with_day(known, day)
                continue
            if day is not None:
                item["day"] = day
            if message["type"] == "update":
                item["window"] = message["window"]
            self.items[isin] = item
            named = isin, self._codes.get(isin), ALL if is_instrument(isin) else None
            keys = (*named, *self._followed_by.get(isin, ()))
            self._listeners.tell(filter(None, keys), item)
        for figures in message.get("groups", ()):
            group = figures["group"]
            before = self.groups.get(group, figures)
            if not self._is_followed(group) or figures["window"] < before["window"]:
                continue
            self.groups[group] = figures
            self._listeners.tell((group, ALL_GROUPS), figures)

    def _tell_feed(self) -> None:
        if self._stale_reason is None:
            self._on_state("live", "live")
        else:
            self._on_state(self._silence, self._stale_reason)
