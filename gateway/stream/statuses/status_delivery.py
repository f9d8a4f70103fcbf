"""Statuses of clients: every one, at once, or how many a client was too slow for."""

import asyncio
from collections.abc import Callable, Collection, Sequence, Set
from typing import Protocol

from gateway.protocol.messages import StatusPosition
from gateway.stream.counters import Counters
from gateway.stream.statuses.status_board import StatusBoard
from ingest.statuses.status_entry import StatusEntry

MOST_WAITING = 200
"""If more statuses wait for a client, it gets the current ones in their place."""

STATUSES_A_FRAME = 500

AT_ONCE = 256
"""This many clients are told before the event loop may do something else."""


class HeldKeys(Protocol):
    """What a client holds."""

    def holds(self, isin: str) -> bool:
        """Say whether an instrument, or a series of it, is held."""

    def among(self, isins: Collection[str]) -> Collection[str]:
        """Return which of some instruments are held."""


class StatusWatcher(Protocol):
    """Who is told of statuses, and waits for nothing."""

    def offer(self, entries: Sequence[StatusEntry]) -> None:
        """Take in the next ones."""

    def request(self) -> object:
        """Have the current ones sent, if there are any."""

    def restart(self, missed: int | None) -> None:
        """Have the current ones sent in place of all that was sent before."""

    def wake(self) -> None:
        """Send what is owed."""


def statuses_frame(
    epoch: str | None,
    items: Sequence[bytes],
    missed: int | None = 0,
    *,
    is_snapshot: bool = False,
    is_resumed: bool = False,
) -> bytes:
    """Build a frame. ``missed`` statuses were not sent; None: nobody knows how many.

    A snapshot stands for all that a client was told before. One that is resumed has
    what the client missed while it was away, and ``missed`` is all else of that.
    """
    head = b'{"type":"statuses","epoch":"%b"' % (epoch or "").encode()
    return b'%b,"snapshot":%b%b,"missed":%b,"entries":[%b]}' % (
        head,
        b"true" if is_snapshot else b"false",
        b',"resumed":true' if is_resumed else b"",
        b"null" if missed is None else b"%d" % missed,
        b",".join(items),
    )


def encode_board(
    board: StatusBoard, entries: Sequence[StatusEntry], *, is_bare: bool
) -> bytes:
    """Encode current ones for REST, as of the newest number."""
    items = [entry.bare if is_bare else entry.text for entry in entries]
    head = b'{"epoch":"%b","number":%d' % ((board.epoch or "").encode(), board.number)
    return b'%b,"count":%d,"data":[%b]}' % (head, len(items), b",".join(items))


class StatusDesk:
    """Hands statuses out, and knows which are current: ``board``."""

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.board = StatusBoard()
        self._watchers: dict[StatusWatcher, None] = {}
        # The newest one alone, as most clients get it, by whether it is bare.
        self._frames: dict[tuple[int, bool], bytes] = {}

    def watch(self, watcher: StatusWatcher) -> None:
        self._watchers[watcher] = None

    def leave(self, watcher: StatusWatcher) -> None:
        self._watchers.pop(watcher, None)

    async def publish(self, entries: Sequence[StatusEntry]) -> None:
        """Tell everybody who holds their instruments."""
        for entry in entries:
            self.board.put(entry)
        self._frames.clear()
        self.counters.statuses_published += len(entries)
        for number, watcher in enumerate(tuple(self._watchers), 1):
            if number % AT_ONCE == 0:
                # Windows go out in between, and who left meanwhile is not told.
                await asyncio.sleep(0)
            watcher.offer(entries)

    async def begin(self) -> None:
        """Answer those who came before the first look, which found nothing."""
        for watcher in tuple(self._watchers):
            watcher.request()
            watcher.wake()

    async def restart(self, missed: int | None) -> None:
        """Tell everybody what is current: the numbers have a hole, or began anew."""
        self.counters.status_reloads += 1
        for number, watcher in enumerate(tuple(self._watchers), 1):
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
            watcher.restart(missed)

    def frame_of(self, entry: StatusEntry, *, is_bare: bool) -> bytes:
        """Return the frame of one entry alone; all clients get the same."""
        key = entry.number, is_bare
        frame = self._frames.get(key)
        if frame is None:
            text = entry.bare if is_bare else entry.text
            frame = self._frames[key] = statuses_frame(self.board.epoch, [text])
        return frame


class StatusDelivery:
    """Knows which statuses a client is due; memory for them is bounded.

    ``wake`` has sent what is owed. While ``is_bare`` no prices of trades are told.
    """

    __slots__ = (
        *("_already", "_desk", "_held", "_is_due", "_is_forced", "_missed", "_rest"),
        *("_since", "_upto", "_waiting", "is_bare", "wake"),
    )

    def __init__(
        self, desk: StatusDesk, held: HeldKeys, wake: Callable[[], None]
    ) -> None:
        self._desk, self._held, self.wake = desk, held, wake
        self.is_bare = False
        self._waiting: list[StatusEntry] = []
        self._rest: list[StatusEntry] = []
        self._missed: int | None = 0
        self._upto = 0
        self._since: StatusPosition | None = None
        self._already: Set[str] = frozenset()
        self._is_due = self._is_forced = False
        desk.watch(self)

    @property
    def is_owed(self) -> bool:
        """Whether anything is to be sent."""
        return bool(self._waiting or self._is_due or self._rest)

    def offer(self, entries: Sequence[StatusEntry]) -> None:
        """Take in those of them that it is to be sent, and have them sent."""
        holds = self._held.holds
        # What is not newer than a snapshot was in it.
        news = [e for e in entries if e.number > self._upto and holds(e.status.isin)]
        if not news:
            return
        if len(self._waiting) + len(news) > MOST_WAITING:
            missed = len(self._waiting) + len(news)
            self._desk.counters.statuses_missed += missed
            self._waiting = []
            self._miss(missed)
        else:
            self._waiting += news
        self.wake()

    def held_after(self, since: StatusPosition) -> Set[str]:
        """Return which instruments are held of those with statuses since then."""
        _, entries = self._desk.board.newest.after(since.number)
        isins = {entry.status.isin for entry in entries}
        return {isin for isin in isins if self._held.holds(isin)}

    def request(
        self, since: StatusPosition | None = None, already: Set[str] = frozenset()
    ) -> int:
        """Have the current ones sent, if there are any; return how many that may be.

        Before them, what came ``since`` a position of a client that comes back, of all
        instruments that it holds then but those it held ``already``.
        """
        self._is_due = True
        count = len(self._held.among(self._desk.board.isins))
        if since is None:
            return count
        if self._since is not None:
            # Both are of one connection, and so of one position.
            already &= self._already
        self._since, self._already = since, already
        return count + MOST_WAITING

    def restart(self, missed: int | None) -> None:
        """Have the current ones sent in place of all that was sent before."""
        self._miss(None if missed is None else missed + len(self._waiting))
        self._waiting, self._upto = [], 0
        self.wake()

    def close(self) -> None:
        """Be sent nothing any more."""
        self._desk.leave(self)
        self._waiting, self._rest, self._is_due = [], [], False
        self._since = None

    def next_frame(self) -> bytes | None:
        """Return what to send next, None if there is nothing."""
        holds = self._held.holds
        if self._since is not None and self._desk.board.epoch is not None:
            return self._resume(self._since)
        if self._waiting:
            # Keys may have been dropped meanwhile.
            entries = [e for e in self._waiting if holds(e.status.isin)]
            self._waiting = []
            if len(entries) == 1 and self._missed == 0:
                return self._desk.frame_of(entries[0], is_bare=self.is_bare)
            if entries:
                return self._frame(entries)
        if self._is_due:
            self._is_due = False
            board = self._desk.board
            entries = board.pick(self._held.among(board.isins))
            self._upto = board.number
            is_forced, self._is_forced = self._is_forced, False
            self._rest = entries[STATUSES_A_FRAME:]
            if entries or is_forced:
                return self._frame(entries[:STATUSES_A_FRAME], is_snapshot=True)
        if self._rest:
            entries, rest = self._rest[:STATUSES_A_FRAME], self._rest[STATUSES_A_FRAME:]
            self._rest = rest
            return self._frame([e for e in entries if holds(e.status.isin)])
        return None

    def _resume(self, since: StatusPosition) -> bytes:
        """Return what a client missed, with what waits, and how much is not in it."""
        board, already, holds = self._desk.board, self._already, self._held.holds
        missed: int | None = None
        entries = self._waiting
        if since.epoch == board.epoch and since.number <= board.number:
            missed, news = board.newest.after(since.number)
            entries = [*entries, *(e for e in news if e.status.isin not in already)]
        by_number = {e.number: e for e in entries if holds(e.status.isin)}
        numbers = sorted(by_number)
        sent = [by_number[number] for number in numbers[-MOST_WAITING:]]
        if missed is not None:
            missed += len(numbers) - len(sent)
            self._desk.counters.statuses_missed += missed
        self._waiting, self._since, self._upto = [], None, board.number
        items = [e.bare if self.is_bare else e.text for e in sent]
        return statuses_frame(board.epoch, items, missed, is_resumed=True)

    def _miss(self, missed: int | None) -> None:
        self._is_due = self._is_forced = True
        if missed is None or self._missed is None:
            self._missed = None
        else:
            self._missed += missed

    def _frame(
        self, entries: Sequence[StatusEntry], *, is_snapshot: bool = False
    ) -> bytes:
        missed, self._missed = self._missed, 0
        items = [e.bare if self.is_bare else e.text for e in entries]
        epoch = self._desk.board.epoch
        return statuses_frame(epoch, items, missed, is_snapshot=is_snapshot)
