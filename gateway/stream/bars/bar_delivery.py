"""Bars of one client: what it watches and what it has not been sent yet. Pure.

It keeps the newest state of each bar that is pending, never a queue of states: a slow
client gets fewer and newer ones. If too many bars are pending, they are forgotten, and
the client gets a snapshot that says so.
"""

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Protocol

from gateway.protocol.bar_keys import BarKey
from gateway.stream.bars.bar_desk import BarDesk, BarRequest
from gateway.stream.bars.bar_update import (
    NO_BARS,
    BarId,
    BarPosition,
    BarRow,
    BarUpdate,
    bar_snapshot_frame,
    bars_frame,
    has_ended,
)

BARS_A_FRAME = 500

MOST_PENDING = 10_000
"""If more bars are pending, the client starts over with a snapshot."""


class Waker(Protocol):
    """Writes a client's frames when it is told that there are some."""

    def wake(self) -> None:
        """Send what the client is due."""


class PacedBars(Protocol):
    """Says how far a client whose token names an interval may see."""

    @property
    def shown_ms(self) -> int:
        """Nothing younger than this may be told."""


class BarDelivery:
    """Knows which bars a client is due. Each goes out at most once per interval.

    Its snapshot comes before its updates, and no bar goes back. ``position``: the
    client was sent everything up to it. ``paced`` is set where a token allows one
    price in an interval: then the client is told of bars that ended before it began.
    """

    __slots__ = (
        "_desk",
        "_is_resumed",
        "_pending",
        "_requests",
        "_sent_slot",
        "_snapshot",
        "_update",
        "_waker",
        "interval_ms",
        "key_set",
        "paced",
        "position",
    )

    def __init__(self, desk: BarDesk, waker: Waker) -> None:
        self._desk = desk
        self._waker = waker
        self.key_set = NO_BARS
        self.interval_ms = 0
        self.paced: PacedBars | None = None
        self.position = desk.position
        # Snapshots that were asked for and are not there yet.
        self._requests = 0
        self._snapshot: dict[BarId, BarRow] | None = None
        self._is_resumed = False
        self._pending: dict[BarId, BarRow] = {}
        self._update: BarUpdate | None = None
        self._sent_slot: int | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that are held, in order."""
        return tuple(map(str, self.key_set.keys))

    @property
    def pending(self) -> int:
        """How many bars the client has not been sent yet."""
        self._spill()
        return len(self._pending) + len(self._snapshot or ())

    @property
    def is_owed(self) -> bool:
        """Whether something is to be sent now: what may wait is not owed yet."""
        if self._snapshot is not None:
            return True
        if self._requests or not (self._pending or self._update):
            return False
        if self._slot() == self._sent_slot:
            return False
        return self.paced is None or bool(self._tellable())

    @property
    def resume_position(self) -> BarPosition | None:
        """The position to come back with, None while a snapshot is under way."""
        return None if self._is_starting else self.position

    def add(
        self,
        keys: Collection[BarKey],
        last: int,
        since: BarPosition | None,
        cost: int = 1,
    ) -> None:
        """Watch further keys and have their newest ``last`` bars sent, none for 0.

        ``cost`` is how many bars are read for them.
        """
        self._spill()
        self.key_set = self._desk.watch(self, {*self.key_set.keys, *keys})
        if self.paced is not None:
            # What it was not told yet lies before any position.
            since = None
        if last:
            self._ask(tuple(sorted(keys)), last, since, cost)

    def drop(self, keys: Collection[BarKey]) -> None:
        """Watch some keys no longer; what is pending of them is not sent."""
        self._spill()
        kept = set(self.key_set.keys).difference(keys)
        self.key_set = self._desk.watch(self, kept)
        if not kept:
            self._requests, self._snapshot = 0, None
        wants = self.key_set.wants
        self._pending = {
            i: row for i, row in self._pending.items() if wants(i.interval, i.isin)
        }
        if self._snapshot:
            self._snapshot = {
                i: r for i, r in self._snapshot.items() if wants(i.interval, i.isin)
            }

    def close(self) -> None:
        """Watch nothing any more."""
        self.drop(self.key_set.keys)

    def offer(self, update: BarUpdate) -> None:
        """Take an update in; one that is newest and alone is sent as it is."""
        if not update.touches(self.key_set):
            self._skip(update.position)
            return
        is_idle = not (self._pending or self._update or self._is_starting)
        if is_idle and self.paced is None:
            self._update = update
            return
        self._spill()
        self._put(update.rows(self.key_set))
        if len(self._pending) > MOST_PENDING:
            self._desk.counters.bar_snapshots_restarted += 1
            self.ask_anew()

    def ask_anew(self) -> None:
        """Forget what is pending and ask for the newest bars once more."""
        self._update, self._pending = None, {}
        self._snapshot = None
        if self.key_set.keys:
            self._ask(self.key_set.keys, 1, None, len(self.key_set.keys))

    def wake(self) -> None:
        """Have what is owed sent."""
        self._waker.wake()

    def take_snapshot(
        self, rows: Iterable[BarRow], position: BarPosition, *, is_resumed: bool
    ) -> None:
        """Take in what was read for a request, as of ``position``.

        What came meanwhile and is newer is sent behind it.
        """
        self._requests = max(0, self._requests - 1)
        if not self.key_set.keys:
            return
        wants = self.key_set.wants
        snapshot = {row.id: row for row in rows if wants(row.id.interval, row.id.isin)}
        for bar, row in snapshot.items():
            newer = self._pending.get(bar)
            if newer is not None and newer.version <= row.version:
                del self._pending[bar]
        if self.paced is not None:
            self._put(snapshot.values())
            tellable = self._tellable()
            snapshot = {bar: self._pending.pop(bar) for bar in tellable}
        is_joined = self._snapshot is not None
        self._is_resumed = is_resumed and (self._is_resumed or not is_joined)
        self._snapshot = {**(self._snapshot or {}), **snapshot}
        if self._requests == 0 and position.epoch == self._desk.position.epoch:
            self.position = position
        self.wake()

    def next_frame(self) -> bytes | None:
        """Return what to send next, None if there is nothing now."""
        if self._snapshot is not None:
            return self._snapshot_frame(self._snapshot)
        if self.paced is not None:
            self._spill()
        if not self.is_owed:
            return None
        update, self._update = self._update, None
        if update is not None:
            self._sent_slot = self._slot()
            self.position = update.position
            return update.frame(self.key_set)
        ids = tuple(islice(self._tellable(), BARS_A_FRAME))
        bodies = [self._pending.pop(bar).body for bar in ids]
        if not self._tellable():
            self._sent_slot = self._slot()
            self.position = self._desk.position
        return bars_frame(self.position, bodies)

    @property
    def _is_starting(self) -> bool:
        return bool(self._requests) or self._snapshot is not None

    def _ask(
        self,
        keys: tuple[BarKey, ...],
        last: int,
        since: BarPosition | None,
        cost: int,
    ) -> None:
        if self._desk.request(BarRequest(self, keys, last, since, cost)):
            self._requests += 1

    def _snapshot_frame(self, snapshot: dict[BarId, BarRow]) -> bytes:
        ids = tuple(islice(snapshot, BARS_A_FRAME))
        bodies = [snapshot.pop(bar).body for bar in ids]
        is_final = not snapshot
        if is_final:
            self._snapshot = None
            # What comes next is another window's.
            self._sent_slot = self._slot()
        return bar_snapshot_frame(
            self.position, bodies, final=is_final, resumed=self._is_resumed
        )

    def _slot(self) -> int:
        desk = self._desk
        return desk.now_ms // max(self.interval_ms, desk.window_ms())

    def _skip(self, position: BarPosition) -> None:
        if not (self._pending or self._update or self._is_starting):
            self.position = position

    def _spill(self) -> None:
        update, self._update = self._update, None
        if update is not None:
            self._put(update.rows(self.key_set))

    def _tellable(self) -> Collection[BarId]:
        """Return which of the pending bars may be told now."""
        if self.paced is None:
            return self._pending
        shown_ms = self.paced.shown_ms
        return [bar for bar in self._pending if has_ended(bar, shown_ms)]

    def _put(self, rows: Iterable[BarRow]) -> None:
        for row in rows:
            if self.paced is not None and not row.is_closed:
                continue
            known = self._pending.get(row.id)
            if known is None or known.version < row.version:
                self._pending[row.id] = row
