"""Bars of clients: who watches what, what is to be read, what is not sent yet. Pure.

Of each bar that is pending the newest state is kept, never a queue of states: a slow
client gets fewer and newer ones. If too many bars are pending, they are forgotten, and
the client gets a snapshot that says so.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from itertools import islice

from gateway.protocol.messages import BarPosition
from gateway.protocol.prefixed_keys import BarKey
from gateway.stream.bars.bar_update import (
    NO_BARS,
    BarId,
    BarKeySet,
    BarRow,
    BarUpdate,
    bar_snapshot_frame,
    bars_frame,
    has_ended,
)
from gateway.stream.counters import Counters
from gateway.stream.paced_source import PacedSource
from ingest.series import is_series
from tickthrottle_client.tick_v1 import ALL

BARS_A_FRAME = 500

MOST_PENDING = 10_000
"""If more bars are pending, the client starts over with a snapshot."""


@dataclass(frozen=True, slots=True)
class BarRequest:
    """Bars to be read for one client: its snapshot.

    The newest ``last`` bars of each key; those alone that changed after ``since``
    if everything since is still kept. ``cost`` is how many bars are read for it.
    """

    watcher: "BarDelivery"
    keys: tuple[BarKey, ...]
    last: int
    since: BarPosition | None
    cost: int = 1


class BarDesk:
    """Knows every client that watches bars. It costs nothing while there is none.

    ``position`` is how far bars were read, ``now_ms`` the time of day as of then.
    ``requests`` waits for whoever reads bars, who is told by ``on_work``; a client has
    one at most. ``window_ms`` is how long a window lasts, ``instruments`` how many
    there are.
    """

    def __init__(
        self,
        counters: Counters,
        window_ms: Callable[[], int],
        instruments: Callable[[], int],
    ) -> None:
        self.counters = counters
        self.window_ms = window_ms
        self.instruments = instruments
        self.position = BarPosition()
        self.now_ms = 0
        self.requests: dict[BarDelivery, BarRequest] = {}
        self.on_work: Callable[[], None] = lambda: None
        self._key_sets: dict[tuple[BarKey, ...], BarKeySet] = {}
        self._watchers: dict[BarDelivery, None] = {}
        self._wanted: Counter[BarKey] = Counter()

    def __len__(self) -> int:
        return len(self._watchers)

    @property
    def has_work(self) -> bool:
        """Whether anybody watches bars, or waits for some."""
        return bool(self._watchers or self.requests)

    def wants(self, interval: str, isin: str) -> bool:
        """Say whether anybody watches an instrument's bars of this length."""
        if BarKey(interval, isin) in self._wanted:
            return True
        return BarKey(interval, ALL) in self._wanted and not is_series(isin)

    def watch(self, watcher: "BarDelivery", keys: Collection[BarKey]) -> None:
        """Have a client watch ``keys`` in place of what it did."""
        before = watcher.key_set
        self._wanted.update(keys)
        for key in before.keys:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key]
        if keys:
            names = tuple(sorted(keys))
            watcher.key_set = self._key_sets.setdefault(names, BarKeySet(names))
            self._watchers[watcher] = None
            self.on_work()
        else:
            watcher.key_set = NO_BARS
            self._watchers.pop(watcher, None)
            self.requests.pop(watcher, None)
        # Whoever comes, or never watched bars, had none: nobody has to be looked at.
        if before is not NO_BARS and not any(
            other.key_set is before for other in self._watchers
        ):
            self._key_sets.pop(before.keys, None)

    def request(self, request: BarRequest) -> bool:
        """Have bars read for a client; say whether it has waited for none before."""
        before = self.requests.get(request.watcher)
        if before is not None:
            keys = tuple(sorted({*before.keys, *request.keys}))
            since = before.since if before.since == request.since else None
            last = max(before.last, request.last)
            cost = before.cost + request.cost
            request = BarRequest(request.watcher, keys, last, since, cost)
        self.requests[request.watcher] = request
        self.on_work()
        return before is None

    def publish(self, update: BarUpdate, now_ms: int) -> None:
        """Offer an update to everybody who watches bars."""
        self.position, self.now_ms = update.position, now_ms
        for watcher in tuple(self._watchers):
            watcher.offer(update)
            if watcher.is_owed:
                watcher.wake()

    def flush(self, now_ms: int) -> None:
        """Have sent what was held back until now."""
        self.now_ms = now_ms
        for watcher in tuple(self._watchers):
            if watcher.is_owed:
                watcher.wake()

    def restart(self, position: BarPosition) -> None:
        """Have everybody read anew: between this position and the last is a hole."""
        self.position = position
        for watcher in tuple(self._watchers):
            watcher.ask_anew()


@dataclass(slots=True, eq=False)
class BarDelivery:
    """Knows which bars a client is due. Each goes out at most once per interval.

    Its snapshot comes before its updates, and no bar goes back. ``position``: the
    client was sent everything up to it. ``paced`` is set where a token allows one
    price in an interval: then the client is told of bars that ended before it began.
    ``wake`` has sent what is owed.
    """

    _desk: BarDesk
    wake: Callable[[], None]
    key_set: BarKeySet = NO_BARS
    interval_ms: int = 0
    paced: PacedSource | None = None
    position: BarPosition = field(init=False)
    # Snapshots that were asked for and are not there yet.
    _requests: int = 0
    _snapshot: dict[BarId, BarRow] | None = None
    _is_resumed: bool = False
    _pending: dict[BarId, BarRow] = field(default_factory=dict)
    _update: BarUpdate | None = None
    _sent_slot: int | None = None

    def __post_init__(self) -> None:
        """Begin where the desk is."""
        self.position = self._desk.position

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
        self._desk.watch(self, {*self.key_set.keys, *keys})
        if self.paced is not None:
            # What it was not told yet lies before any position.
            since = None
        if last:
            self._ask(tuple(sorted(keys)), last, since, cost)

    def drop(self, keys: Collection[BarKey]) -> None:
        """Watch some keys no longer; what is pending of them is not sent."""
        self._spill()
        self._desk.watch(self, set(self.key_set.keys).difference(keys))
        if not self.key_set.keys:
            self._requests, self._snapshot = 0, None
        self._pending = self._wanted(self._pending.values())
        if self._snapshot:
            self._snapshot = self._wanted(self._snapshot.values())

    def close(self) -> None:
        """Watch nothing any more."""
        self.drop(self.key_set.keys)

    def offer(self, update: BarUpdate) -> None:
        """Take an update in; one that is newest and alone is sent as it is."""
        is_idle = not (self._pending or self._update or self._is_starting)
        if not update.touches(self.key_set):
            if is_idle:
                self.position = update.position
            return
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

    def take_snapshot(
        self, rows: Iterable[BarRow], position: BarPosition, *, is_resumed: bool
    ) -> None:
        """Take in what was read for a request, as of ``position``.

        What came meanwhile and is newer is sent behind it.
        """
        self._requests = max(0, self._requests - 1)
        if not self.key_set.keys:
            return
        snapshot = self._wanted(rows)
        for bar, row in snapshot.items():
            newer = self._pending.get(bar)
            if newer is not None and newer.version <= row.version:
                del self._pending[bar]
        if self.paced is not None:
            self._put(snapshot.values())
            snapshot = {bar: self._pending.pop(bar) for bar in self._tellable()}
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

    def _wanted(self, rows: Iterable[BarRow]) -> dict[BarId, BarRow]:
        """Return those rows that are of what is watched now."""
        wants = self.key_set.wants
        return {row.id: row for row in rows if wants(row.id.interval, row.id.isin)}

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
            before = self._pending.get(row.id)
            if before is None or before.version < row.version:
                self._pending[row.id] = row
