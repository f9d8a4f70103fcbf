"""What clients of trades share: who follows which instrument, and the numbers."""

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import Protocol

from gateway.stream.counters import Counters


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


class TradeWatcher(Protocol):
    """One client's trades, as the desk knows them."""

    def offer(self, batch: TradeBatch) -> None:
        """Take trades in."""

    def skip(self, isin: str) -> None:
        """Take in that trades went by unread."""

    def wake(self) -> None:
        """Have what is owed sent."""


class TradeDesk:
    """Knows who follows the trades of which instrument.

    Numbers of an instrument go on for as long as anybody follows it. ``problem`` says
    why the log cannot be read, None if it can.
    """

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.problem: str | None = None
        self._watchers: dict[str, dict[TradeWatcher, None]] = {}
        self._numbers: dict[str, int] = {}
        self._followed = asyncio.Event()

    @property
    def isins(self) -> Set[str]:
        """The instruments that are followed."""
        return self._watchers.keys()

    async def followed(self) -> None:
        """Wait until somebody follows something."""
        await self._followed.wait()

    def watch(self, isin: str, watcher: TradeWatcher) -> None:
        """Have a client follow an instrument from now on."""
        self._watchers.setdefault(isin, {})[watcher] = None
        self._numbers.setdefault(isin, 1)
        self._followed.set()

    def leave(self, isin: str, watcher: TradeWatcher) -> None:
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
        touched: dict[TradeWatcher, None] = {}
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
