"""The client for scripts that are not asynchronous::

    with BlockingTickClient("ws://127.0.0.1:8000/v1/stream") as ticks:
        for item in ticks.follow("KR7005930003"):
            print(item["price"])

It is ``TickClient`` in a thread of its own.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, Self

from tickthrottle_client.bar_book import Bar
from tickthrottle_client.item_sums import WaitingItems
from tickthrottle_client.status_book import InstrumentStatus
from tickthrottle_client.tick_client import Item, TickClient
from tickthrottle_client.trade_book import TradeEntry

_CALL_S = 30.0
_LOOK_S = 0.5
"""A signal is looked for this often, where waiting cannot be interrupted by one."""


class BlockingTickClient:
    """Follows the stream in a thread of its own for as long as the block lasts.

    It takes what ``TickClient`` takes, and has the same names. Callbacks are called in
    that thread, one after the other: while one works, nothing else comes. What ends the
    stream, such as an exception of a callback, is raised by ``follow``, and by the end
    of the block.
    """

    def __init__(self, url: str, **options: Any) -> None:
        self._client = TickClient(url, **options)
        self._changed = threading.Condition()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._end: asyncio.Event | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        with self._changed:
            while self._loop is None and self._thread.is_alive():
                self._changed.wait(_LOOK_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the connection. Raises what has ended it before."""
        loop, end = self._loop, self._end
        if loop is not None and end is not None:
            # A loop that is over is closed.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end.set)
        self._thread.join()
        if kind is None and self._error is not None:
            raise self._error

    @property
    def items(self) -> dict[str, Item]:
        """The newest item of each instrument that is followed, as it is now."""
        return dict(self._client.items)

    @property
    def groups(self) -> dict[str, Item]:
        """The newest figures of each group that is followed, as they are now."""
        return dict(self._client.groups)

    @property
    def statuses(self) -> dict[str, list[InstrumentStatus]]:
        """The current statuses of each instrument that is followed, as they are now."""
        return dict(self._client.statuses)

    @property
    def last_window(self) -> int | None:
        """The end of the newest window that has arrived, ms; None before the first."""
        return self._client.last_window

    @property
    def window_ms(self) -> int:
        """The length of a window, ms."""
        return self._client.window_ms

    @property
    def members(self) -> dict[str, tuple[str, ...]]:
        """The instruments of each market and sector that is followed, as of now."""
        return dict(self._client.members)

    @property
    def position(self) -> dict[str, Any] | None:
        """Up to there everything has arrived; None before the first answer."""
        return self._client.position

    def subscribe(
        self, keys: str | Collection[str], callback: Callable[[Item], object]
    ) -> Callable[[], None]:
        """Have a callback called for items (``TickClient.subscribe``)."""
        return self._begin(lambda: self._client.subscribe(keys, callback))

    def bars(
        self,
        interval: str,
        instruments: str | Collection[str],
        callback: Callable[[Bar], object],
        *,
        last: int = 1,
    ) -> Callable[[], None]:
        """Have a callback called for bars (``TickClient.bars``)."""
        return self._begin(
            lambda: self._client.bars(interval, instruments, callback, last=last)
        )

    def trades(
        self,
        instruments: str | Collection[str],
        callback: Callable[[TradeEntry], object],
    ) -> Callable[[], None]:
        """Have a callback called for every trade (``TickClient.trades``)."""
        return self._begin(lambda: self._client.trades(instruments, callback))

    def follow(self, *keys: str, timeout_s: float | None = None) -> Iterator[Item]:
        """Yield the items of keys as they come (``TickClient.follow``).

        It ends when nothing has come for ``timeout_s``; without that it waits for as
        long as the stream is followed. Raises TickError when that has ended, and
        RuntimeError in a callback, which nothing would reach while it waits.
        """
        if self._is_called_back:
            raise RuntimeError("a callback cannot follow: it may subscribe")
        waiting = WaitingItems()

        def put(item: Item) -> None:
            with self._changed:
                waiting.put(item)
                self._changed.notify_all()

        stop = self.subscribe(keys, put)
        try:
            while True:
                with self._changed:
                    self._wait_for(waiting, timeout_s)
                    item = waiting.take() if waiting else None
                if item is None:
                    return
                yield item
        finally:
            stop()

    @property
    def _is_called_back(self) -> bool:
        """Whether a callback asks, in the thread of the stream."""
        return threading.current_thread() is self._thread

    def _begin(self, ask: Callable[[], Callable[[], None]]) -> Callable[[], None]:
        """Ask the client in its thread; return what ends it, from any thread."""

        loop = self._loop_of_thread()
        if self._is_called_back:
            # It would wait for itself.
            return ask()
        begun: Future[Callable[[], None]] = Future()

        def begin() -> None:
            if begun.set_running_or_notify_cancel():
                try:
                    begun.set_result(ask())
                except Exception as error:  # noqa: BLE001 - it is raised to who asks
                    begun.set_exception(error)

        # A loop that has just ended may take it and never come to it, or be closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(begin)
        until_s = time.monotonic() + _CALL_S
        while not wait([begun], _LOOK_S).done:
            self._loop_of_thread()
            if time.monotonic() > until_s and begun.cancel():
                raise TimeoutError(f"the stream's thread is busy for {_CALL_S:g} s")
        end = begun.result()

        def stop() -> None:
            if self._is_called_back:
                # At once: more may be told of what has come.
                end()
                return
            # Nobody waits for it: the block may be over.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(end)

        return stop

    def _wait_for(self, waiting: WaitingItems, timeout_s: float | None) -> None:
        until_s = None if timeout_s is None else time.monotonic() + timeout_s
        while not waiting:
            self._loop_of_thread()
            left_s = _LOOK_S
            if until_s is not None:
                left_s = min(left_s, until_s - time.monotonic())
                if left_s <= 0:
                    return
            self._changed.wait(left_s)

    def _loop_of_thread(self) -> asyncio.AbstractEventLoop:
        """Return the loop. Raises what has ended the stream, or RuntimeError."""
        # In this order: the thread says why it ends before it does.
        is_there = self._thread.is_alive()
        if self._error is not None:
            raise self._error
        if self._loop is None or not is_there:
            raise RuntimeError("the block of the client has not begun, or is over")
        return self._loop

    def _run(self) -> None:
        try:
            asyncio.run(self._follow())
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            self._error = error
        with self._changed:
            self._changed.notify_all()

    async def _follow(self) -> None:
        self._end = asyncio.Event()
        async with self._client:
            with self._changed:
                self._loop = asyncio.get_running_loop()
                self._changed.notify_all()
            await self._end.wait()
