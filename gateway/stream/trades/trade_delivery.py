"""Trades of one client: every one in order, or how many it was too slow for. Pure."""

from collections import deque
from collections.abc import Collection

from gateway.stream.bars.bar_delivery import Waker
from gateway.stream.trades.trade_desk import TradeBatch, TradeDesk, trades_frame
from tickthrottle_client.tick_v1 import TRADES

MOST_WAITING = 2_000
"""If more trades of an instrument wait for a client, the oldest are left out."""

MOST_WAITING_BYTES = 524_288

TRADES_A_FRAME = 500


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
    """Knows which trades a client is due; memory for them is bounded."""

    __slots__ = ("_desk", "_waiting", "_waker")

    def __init__(self, desk: TradeDesk, waker: Waker) -> None:
        self._desk = desk
        self._waker = waker
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
            if isin not in self._waiting:
                self._waiting[isin] = _Waiting()
                self._desk.watch(isin, self)

    def drop(self, isins: Collection[str]) -> None:
        """Follow some no longer; what waits of them is not sent."""
        for isin in isins:
            if self._waiting.pop(isin, None) is not None:
                self._desk.leave(isin, self)

    def close(self) -> None:
        """Follow nothing any more."""
        self.drop(tuple(self._waiting))

    def offer(self, batch: TradeBatch) -> None:
        """Take trades in; the oldest make room if too many wait."""
        waiting = self._waiting.get(batch.isin)
        if waiting is None:
            return
        waiting.put(batch)
        while len(waiting.batches) > 1 and (
            waiting.count > MOST_WAITING or waiting.size > MOST_WAITING_BYTES
        ):
            self._desk.counters.trades_missed += waiting.leave_out()

    def skip(self, isin: str) -> None:
        """Take in that trades went by unread: nobody knows how many."""
        waiting = self._waiting.get(isin)
        if waiting is not None:
            waiting.has_gap = True

    def wake(self) -> None:
        """Have what is owed sent."""
        self._waker.wake()

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
