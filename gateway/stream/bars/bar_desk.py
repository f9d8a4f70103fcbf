"""What clients of bars share: who watches what, and what is still to be read. Pure."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from gateway.protocol.bar_keys import BarKey
from gateway.stream.bars.bar_update import (
    NO_BARS,
    BarKeySet,
    BarPosition,
    BarRow,
    BarUpdate,
)
from gateway.stream.counters import Counters
from ingest.series import is_series
from tickthrottle_client.tick_v1 import ALL

DEFAULT_WINDOW_MS = 2_000


class Watcher(Protocol):
    """One client's bars, as the desk knows them."""

    key_set: BarKeySet

    @property
    def is_owed(self) -> bool:
        """Whether something is to be sent now."""

    def offer(self, update: BarUpdate) -> None:
        """Take an update in."""

    def take_snapshot(
        self, rows: Iterable[BarRow], position: BarPosition, *, is_resumed: bool
    ) -> None:
        """Take in what was read for a request."""

    def ask_anew(self) -> None:
        """Ask for everything once more: some messages cannot be had."""

    def wake(self) -> None:
        """Have what is owed sent."""


@dataclass(frozen=True, slots=True)
class BarRequest:
    """Bars to be read for one client: its snapshot.

    The newest ``last`` bars of each key; those alone that changed after ``since``
    if everything since is still kept. ``cost`` is how many bars are read for it.
    """

    watcher: Watcher
    keys: tuple[BarKey, ...]
    last: int
    since: BarPosition | None
    cost: int = 1


class BarDesk:
    """Knows every client that watches bars. It costs nothing while there is none.

    ``position`` is how far bars were read, ``now_ms`` the time of day as of then.
    ``requests`` waits for whoever reads bars, who is told by ``on_work``; a client has
    one at most.
    """

    def __init__(self, counters: Counters) -> None:
        self.counters = counters
        self.position = BarPosition()
        self.now_ms = 0
        self.requests: dict[Watcher, BarRequest] = {}
        self.on_work: Callable[[], None] = lambda: None
        self.window_ms: Callable[[], int] = lambda: DEFAULT_WINDOW_MS
        self.instruments: Callable[[], int] = lambda: 0
        self._key_sets: dict[tuple[BarKey, ...], BarKeySet] = {}
        self._watchers: dict[Watcher, None] = {}
        self._wanted: Counter[BarKey] = Counter()

    def __len__(self) -> int:
        return len(self._watchers)

    def wants(self, interval: str, isin: str) -> bool:
        """Say whether anybody watches an instrument's bars of this length."""
        wanted = self._wanted
        if BarKey(interval, isin) in wanted:
            return True
        return BarKey(interval, ALL) in wanted and not is_series(isin)

    def watch(self, watcher: Watcher, keys: Collection[BarKey]) -> BarKeySet:
        """Have a client watch ``keys`` in place of what it did; return its key set."""
        before = watcher.key_set
        for key in before.keys:
            self._wanted[key] -= 1
            if not self._wanted[key]:
                del self._wanted[key]
        self._wanted.update(keys)
        if not keys:
            self._watchers.pop(watcher, None)
            self.requests.pop(watcher, None)
            self._forget_unused(before)
            return NO_BARS
        names = tuple(sorted(keys))
        key_set = self._key_sets.setdefault(names, BarKeySet(names))
        self._watchers[watcher] = None
        watcher.key_set = key_set
        self.on_work()
        self._forget_unused(before)
        return key_set

    @property
    def has_work(self) -> bool:
        """Whether anybody watches bars, or waits for some."""
        return bool(self._watchers or self.requests)

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
        for watcher in self._all():
            watcher.offer(update)
            if watcher.is_owed:
                watcher.wake()

    def flush(self, now_ms: int) -> None:
        """Have sent what was held back until now."""
        self.now_ms = now_ms
        for watcher in self._all():
            if watcher.is_owed:
                watcher.wake()

    def restart(self, position: BarPosition) -> None:
        """Have everybody read anew: between this position and the last is a hole."""
        self.position = position
        for watcher in self._all():
            watcher.ask_anew()

    def _all(self) -> Iterator[Watcher]:
        return iter(tuple(self._watchers))

    def _forget_unused(self, key_set: BarKeySet) -> None:
        if key_set is NO_BARS:
            return
        if not any(watcher.key_set is key_set for watcher in self._watchers):
            self._key_sets.pop(key_set.keys, None)
