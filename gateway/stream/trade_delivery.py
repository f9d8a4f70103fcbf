"""Trades of clients: every one in order, or how many a client was too slow for."""

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence, Set

from gateway.stream.counters import Counters
from ingest.trade import InvalidTrade, Trade
from tickthrottle_client.tick_v1 import TRADES

MOST_WAITING = 2_000
"""If more trades of an instrument wait for a client, the oldest are left out."""

MOST_WAITING_BYTES = 524_288

TRADES_A_FRAME = 500

_HEAD = b'{"isin":"'
_ISIN = slice(len(_HEAD), len(_HEAD) + 12)


def encode_entry(
    append_ms: int, payload: bytes, isins: Set[str], window_ms: int
) -> tuple[str, bytes] | None:
    """Return the instrument and the JSON object of an entry, None if it is of no use.

    A trade has all its fields, price and size as numbers, and ``window``, the end of
    the window that it was appended in. What takes a trade back is one, too; what is of
    none of ``isins``, or breaks the rules of a trade, is of no use.
    """
    # Nearly all begin so: what is of others is not taken apart.
    if payload.startswith(_HEAD):
        isin = payload[_ISIN].decode("ascii", "replace")
        if isin not in isins:
            return None
    try:
        trade = Trade.from_wire(payload)
    except InvalidTrade:
        return None
    if trade.isin not in isins:
        return None
    body = trade.to_row() if trade.is_trade else trade.to_wire()
    window = append_ms - append_ms % window_ms + window_ms
    return trade.isin, b'%b,"window":%d}' % (body[:-1], window)


class TradeBatch:
    """Trades of an instrument that came in one look, from ``number`` on."""

    __slots__ = ("_frame", "isin", "items", "number", "size")

    def __init__(self, isin: str, number: int, items: Sequence[bytes]) -> None:
        self.isin = isin
        self.number = number
        self.items = items
        self.size = sum(map(len, items))
        self._frame: bytes | None = None

    def frame(self) -> bytes:
        """Return the frame for who has had everything before; all get the same."""
        if self._frame is None:
            self._frame = trades_frame(self.isin, self.number, self.items)
        return self._frame


def trades_frame(
    isin: str, number: int, items: Sequence[bytes], missed: int | None = 0
) -> bytes:
    """Build a frame: ``number`` is that of the first item, ``missed`` went before it.

    ``missed`` is None where nobody knows how many that were.
    """
    return b'{"type":"trades","isin":"%b","number":%d,"missed":%b,"entries":[%b]}' % (
        isin.encode(),
        number,
        b"null" if missed is None else b"%d" % missed,
        b",".join(items),
    )


class TradeDesk:
    """Knows who follows the trades of which instrument.

    Numbers of an instrument go on for as long as anybody follows it. ``problem`` says
    why the log cannot be read, None if it can.
    """

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.problem: str | None = None
        self._watchers: dict[str, dict[TradeDelivery, None]] = {}
        self._numbers: dict[str, int] = {}
        self._followed = asyncio.Event()

    @property
    def isins(self) -> Set[str]:
        """The instruments that are followed."""
        return self._watchers.keys()

    async def followed(self) -> None:
        """Wait until somebody follows something."""
        await self._followed.wait()

    def watch(self, isin: str, watcher: "TradeDelivery") -> None:
        """Have a client follow an instrument from now on."""
        self._watchers.setdefault(isin, {})[watcher] = None
        self._numbers.setdefault(isin, 1)
        self._followed.set()

    def leave(self, isin: str, watcher: "TradeDelivery") -> None:
        """Have a client follow an instrument no longer."""
        watchers = self._watchers.get(isin, {})
        watchers.pop(watcher, None)
        if not watchers:
            self._watchers.pop(isin, None)
            self._numbers.pop(isin, None)
        if not self._watchers:
            self._followed.clear()

    def publish(self, trades: Mapping[str, Sequence[bytes]]) -> None:
        """Hand out what one look has brought, by instrument."""
        touched: dict[TradeDelivery, None] = {}
        for isin, items in trades.items():
            watchers = self._watchers.get(isin)
            if watchers is None:
                continue
            batch = TradeBatch(isin, self._numbers[isin], items)
            self._numbers[isin] += len(items)
            for watcher in watchers:
                watcher.offer(batch)
            touched |= watchers
        for watcher in touched:
            watcher.wake()

    def skip(self) -> None:
        """Tell all who follow anything that trades went by unread."""
        self.counters.trade_looks_skipped += 1
        for isin, watchers in self._watchers.items():
            for watcher in watchers:
                watcher.skip(isin)


class _Waiting:
    """What a client has not been sent of an instrument; ``next`` is due next.

    Before ``gaps`` of its batches trades went by unread.
    """

    __slots__ = ("batches", "count", "gaps", "has_gap", "next", "size")

    def __init__(self) -> None:
        self.batches: deque[TradeBatch] = deque()
        self.count = self.size = 0
        self.next: int | None = None
        self.has_gap = False
        self.gaps: set[int] = set()

    def put(self, batch: TradeBatch) -> None:
        if self.has_gap:
            self.has_gap = False
            self.gaps.add(batch.number)
        self.batches.append(batch)
        self.count += len(batch.items)
        self.size += batch.size

    def pop(self) -> TradeBatch:
        batch = self.batches.popleft()
        self.count -= len(batch.items)
        self.size -= batch.size
        return batch

    def leave_out(self) -> int:
        """Leave the oldest batch out; return how many trades it has."""
        batch = self.pop()
        if self.next is None:
            self.next = batch.number
        if batch.number in self.gaps:
            self.gaps.remove(batch.number)
            self.gaps.add(self.batches[0].number)
        return len(batch.items)


class TradeDelivery:
    """Knows which trades a client is due; memory for them is bounded.

    ``wake`` has sent what is owed.
    """

    __slots__ = ("_desk", "_waiting", "wake")

    def __init__(self, desk: TradeDesk, wake: Callable[[], None]) -> None:
        self._desk = desk
        self.wake = wake
        self._waiting: dict[str, _Waiting] = {}

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are held, in order."""
        return tuple(TRADES + isin for isin in sorted(self._waiting))

    @property
    def isins(self) -> Collection[str]:
        """The instruments that are followed."""
        return self._waiting.keys()

    def add(self, isins: Collection[str]) -> None:
        """Follow further instruments, from now on."""
        for isin in isins:
            self._waiting.setdefault(isin, _Waiting())
            self._desk.watch(isin, self)

    def drop(self, isins: Collection[str]) -> None:
        """Follow some no longer; what waits of them is not sent."""
        for isin in isins:
            self._waiting.pop(isin, None)
            self._desk.leave(isin, self)

    def close(self) -> None:
        """Follow nothing any more."""
        self.drop(tuple(self._waiting))

    def offer(self, batch: TradeBatch) -> None:
        """Take trades in; the oldest make room if too many wait."""
        waiting = self._waiting[batch.isin]
        waiting.put(batch)
        while len(waiting.batches) > 1 and (
            waiting.count > MOST_WAITING or waiting.size > MOST_WAITING_BYTES
        ):
            self._desk.counters.trades_missed += waiting.leave_out()

    def skip(self, isin: str) -> None:
        """Take in that trades went by unread: nobody knows how many."""
        self._waiting[isin].has_gap = True

    def next_frame(self) -> bytes | None:
        """Return what to send next, None if there is nothing."""
        for isin, waiting in self._waiting.items():
            if waiting.batches:
                # The next time it is another instrument's turn.
                self._waiting[isin] = self._waiting.pop(isin)
                return _frame_of(isin, waiting)
        return None


def _frame_of(isin: str, waiting: _Waiting) -> bytes:
    first = waiting.pop()
    due = first.number if waiting.next is None else waiting.next
    missed = None if first.number in waiting.gaps else first.number - due
    waiting.gaps.discard(first.number)
    items = [*first.items]
    while waiting.batches and len(items) < TRADES_A_FRAME:
        if waiting.batches[0].number in waiting.gaps:
            break
        items += waiting.pop().items
    waiting.next = first.number + len(items)
    if missed == 0 and len(items) == len(first.items):
        return first.frame()
    return trades_frame(isin, first.number, items, missed)
