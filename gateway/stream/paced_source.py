"""What clients see whose token allows one price of an instrument in an interval. Pure.

A paced source shows the live board as it was when the interval began, by the clock, to
whoever looks: streams, however often they subscribe, and REST. Intervals begin at
multiples of their length since 1970, so every gateway shows the same.
"""

from collections.abc import Iterator

from gateway.stream.board import Board
from gateway.stream.delivery import Delivery, NewestUpdate
from gateway.stream.frames import Update
from throttle.contract.row_sums import ONE, UNCOUNTED
from throttle.contract.snapshot import Row

LATE_WINDOWS = 2
"""An interval begins without its first window if that is late by more than this many.
"""

MINUTE_MS = 60_000
HOUR_MS = 3_600_000


class PacedSource:
    """A board of its own and the updates that lead from one state of it to the next.

    ``shown_ms`` is the beginning of the interval whose state it shows. One that is
    created in the middle of an interval shows what is there, and that until the end of
    the next one: nobody sees two prices in less than an interval.
    """

    def __init__(self, live: Board, interval_ms: int, now_ms: int) -> None:
        self.interval_ms = interval_ms
        self.newest = NewestUpdate()
        self.board = live.copy()
        self._live = live
        self._begun = now_ms // interval_ms + 1
        # The newest row of each instrument, and of how many trades it and others are.
        self._changed: dict[str, tuple[Row, int]] = {}
        self._groups: set[str] = set()

    @property
    def shown_ms(self) -> int:
        """Nothing younger than this may be told, whatever it is read from."""
        return min(self._begun * self.interval_ms, self.board.position.window or 0)

    def is_due(self, now_ms: int) -> bool:
        """Say whether another interval has begun, and the window before it is there."""
        begins_ms = now_ms // self.interval_ms * self.interval_ms
        if begins_ms <= self._begun * self.interval_ms:
            return False
        late_ms = LATE_WINDOWS * self._live.window_ms
        is_there = (self._live.complete.window or 0) >= begins_ms
        # From the first one that waits: the newest may always be too young for that.
        waits_since_ms = (self._begun + 1) * self.interval_ms
        return is_there or now_ms - waits_since_ms >= late_ms

    def take_in(self, update: Update) -> None:
        """Note what the live board has changed."""
        for isin, row in update.rows.items():
            _, before = self._changed.get(isin, (row, 0))
            self._changed[isin] = row, before + row.trades
        self._groups.update(update.groups)

    def open(self, now_ms: int) -> bool:
        """Show what the live board shows now; say whether that is another state.

        Whoever watches has taken in what was shown before.
        """
        self._begun = now_ms // self.interval_ms
        before, here = self.board.complete, self._live.complete
        first_new = self.board.named
        self.board.show(self._live)
        self.board.clock_ms = now_ms
        changed, groups = self._changed, self._groups
        self._changed, self._groups = {}, set()
        if here.epoch != before.epoch:
            self.newest.skip()
            return True
        if here == before and not changed and not groups:
            return False
        rows = [
            Row(isin, value.version, _sums(row, trades, value.body), value.body)
            for isin, (row, trades) in changed.items()
            if (value := self.board.get(isin)) is not None
        ]
        figures = ((key, self.board.groups.get(key)) for key in sorted(groups))
        self.newest.put(
            Update(
                here,
                here.offset - before.offset,
                rows,
                self.board.numbers,
                {key: body for key, body in figures if body is not None},
                first_new,
            )
        )
        return True


def _sums(row: Row, trades: int, body: bytes) -> bytes:
    """Return what an item may say of an interval's trades: how many, no more.

    High and low are prices of the interval, of which one alone is told. Of one trade
    that is not the item's own nothing is said: its size would be taken for the item's.
    """
    if trades != 1:
        return b"%d" % trades
    return ONE if row.sums == ONE and row.body == body else UNCOUNTED


class PacedSources:
    """The paced sources of a gateway, one for each interval that a token has named.

    None is ever forgotten: it would begin anew. There are ``granted_ms`` of them.
    """

    def __init__(self, live: Board, newest: NewestUpdate) -> None:
        self._live = live
        self._newest = newest
        self._sources: dict[int, PacedSource] = {}

    def of(self, interval_ms: int, now_ms: int) -> PacedSource | None:
        """Return the source for an interval; None if every window may be seen."""
        granted = granted_ms(interval_ms, self._live.window_ms)
        if granted <= self._live.window_ms:
            return None
        source = self._sources.get(granted)
        if source is None:
            source = self._sources[granted] = PacedSource(self._live, granted, now_ms)
        return source

    def lead(
        self, delivery: Delivery, interval_ms: int, now_ms: int
    ) -> PacedSource | None:
        """Have a client be sent what its token allows, and return its source."""
        source = self.of(interval_ms, now_ms)
        if source is None:
            delivery.follow(self._live, self._newest, 0)
        else:
            delivery.follow(source.board, source.newest, source.interval_ms)
        return source

    def take_in(self, update: Update) -> None:
        """Note what the live board has changed."""
        for source in self._sources.values():
            source.take_in(update)

    def due(self, now_ms: int) -> Iterator[PacedSource]:
        """Yield the sources whose next interval has begun."""
        return (s for s in tuple(self._sources.values()) if s.is_due(now_ms))


def granted_ms(interval_ms: int, window_ms: int) -> int:
    """Return the interval that stands for a token's: never a shorter one.

    In whole windows up to a minute, in whole minutes up to an hour, then in hours.
    """
    unit_ms = window_ms
    if interval_ms > MINUTE_MS:
        unit_ms = MINUTE_MS if interval_ms <= HOUR_MS else HOUR_MS
    return max(1, -(-interval_ms // unit_ms)) * unit_ms
