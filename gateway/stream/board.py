"""The board: the last value of every instrument, and what counts as news. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from gateway.protocol.key_sets import InstrumentNumbers
from gateway.stream.chain_tail import ChainTail
from gateway.stream.group_board import GroupBoard
from gateway.stream.once_per_window import OncePerWindow
from ingest.instrument_table.known_instruments import Instruments
from ingest.series import instrument_of, is_series
from throttle.contract.day_so_far import STARTS, day_after
from throttle.contract.group import StoredGroup
from throttle.contract.row_sums import UNCOUNTED
from throttle.contract.snapshot import LastValue, Row, WindowSnapshot

DEFAULT_WINDOW_MS = 2_000
"""Length of a window until the throttle has said what it is."""


@dataclass(frozen=True, slots=True)
class Position:
    """How far the published stream has been read; ``epoch`` is None before anything.

    Positions of two epochs never compare.
    """

    epoch: str | None = None
    offset: int = 0
    window: int | None = None


@dataclass(frozen=True, slots=True)
class News:
    """What an update brings to clients: ``rows`` and ``groups``, to be handed out now.

    It stands for ``windows`` windows up to ``Board.complete``: for 0 while a row of
    them is held back. ``stale`` and ``held`` count rows that are not among ``rows``,
    ``late`` figures of groups that are left out. ``groups`` are by the groups' keys.
    Instruments whose numbers are below ``first_new`` were known before.
    """

    rows: list[Row]
    windows: int
    stale: int
    held: int
    groups: Mapping[str, bytes] = field(default_factory=dict)
    late: int = 0
    first_new: int = field(default=0, compare=False)


class Board:
    """The newest row of every instrument and series, as of ``position``.

    A series (``ingest/series.py``) is no instrument: it has a value by its key, and
    only who asks for that key hears of it.

    The order guard lives here: within an epoch a row is only ever replaced by one
    with a greater version, or restated by a later update that has its version and the
    sums of trades that came too late to be shown. What
    of the news may go out at once is decided by ``once_per_window.py``; up to
    ``complete`` everything was handed out. No position's window goes back within an
    epoch. ``is_in_parts``: the newest window has come in more than one update.
    ``groups`` has the newest figures of markets and sectors. Each value has the day so
    far as of it, where that is known. ``clock_ms`` is the time of day as of the newest
    update, the end of its window if nobody says it. What has a value has a number;
    below ``named`` are those of all that had one when it was last changed. ``chain``
    has the newest links; a copy has none.
    """

    def __init__(self) -> None:
        self.position = Position()
        self.complete = Position()
        self.is_in_parts = False
        self._gate = OncePerWindow()
        self.window_ms = DEFAULT_WINDOW_MS
        self.clock_ms = 0
        self.numbers = InstrumentNumbers()
        self.named = 0
        self.groups = GroupBoard()
        self.chain = ChainTail()
        self._rows: dict[str, LastValue] = {}
        # The keys of its series, by instrument.
        self._series: dict[str, list[str]] = {}

    def __len__(self) -> int:
        return len(self._rows) - sum(map(len, self._series.values()))

    def get(self, isin: str) -> LastValue | None:
        """Return the instrument's last value, or None if it never traded."""
        return self._rows.get(isin)

    def values(self) -> list[LastValue]:
        """Return the value of every instrument and series."""
        return [*self._rows.values()]

    def some(self, count: int) -> list[LastValue]:
        """Return so many values at most, from all over the board."""
        return [*self._rows.values()][:: max(1, len(self._rows) // count)][:count]

    def isins(self) -> list[str]:
        """Return every instrument that has a value, in order; no series."""
        return sorted(self._instruments())

    def series(self, isin: str) -> list[str]:
        """Return the keys of an instrument's series that have a value, in order."""
        return sorted(self._series.get(isin, ()))

    def copy(self) -> "Board":
        """Return a board that shows the same, and stays when this one changes."""
        board = Board()
        board.numbers = self.numbers
        board.show(self)
        return board

    def show(self, other: "Board") -> None:
        """Take over another board's state, up to where it was handed out.

        The clock is that of the other. Days are left out: their high and low are prices
        of the time between two states, which whoever looks at these may not know.
        """
        self.position = self.complete = other.complete
        self.window_ms, self.clock_ms = other.window_ms, other.clock_ms
        self.groups = other.groups.copy()
        rows = {i: value._replace(day=b"") for i, value in other._rows.items()}
        self._put_all(rows)
        self.named = len(self.numbers)

    def unlisted(self, instruments: Instruments) -> list[str]:
        """Return the instruments with a value that are not in the table, in order."""
        every = self._instruments()
        return sorted(isin for isin in every if instruments.get(isin) is None)

    def changed_since(self, offset: int) -> list[str]:
        """Return the instruments changed after ``offset`` of this epoch, in order."""
        rows = self._rows
        return sorted(i for i in self._instruments() if rows[i].offset > offset)

    def apply(self, snapshot: WindowSnapshot) -> News:
        """Take an update in and return what is news; older rows are stale.

        The caller has checked that it follows ``position``.
        """
        offset = snapshot.offset
        self.chain.take(snapshot)
        fresh = [r for r in snapshot.rows if self._is_news(r.isin, r.version, offset)]
        for row in fresh:
            day = self._day_with(row)
            self._put(LastValue(row.isin, row.version, offset, row.body, day))
        stale = len(snapshot.rows) - len(fresh)
        here = Position(snapshot.epoch, offset, snapshot.window)
        groups, late = self.groups.apply(snapshot)
        return self._move(here, fresh, stale, groups, late)

    def catch_up(
        self,
        position: Position,
        values: Iterable[LastValue],
        groups: Iterable[StoredGroup] = (),
        recent: Sequence[WindowSnapshot] = (),
    ) -> News:
        """Take in the stored state of the same epoch and return what is news.

        Its ``sums`` are 0: what was traded in what was missed is not known; rows say
        the day in its place. ``recent``
        are the newest updates where several jobs publish (``GroupBoard.catch_up``).
        """
        fresh = [v for v in values if self._is_news(v.isin, v.version, v.offset)]
        for value in fresh:
            self._put(value)
        rows = [
            Row(v.isin, v.version, UNCOUNTED, v.body, v.day and STARTS + v.day)
            for v in fresh
        ]
        return self._move(position, rows, 0, self.groups.catch_up(groups, recent))

    def replace(
        self,
        position: Position,
        values: Iterable[LastValue],
        groups: Iterable[StoredGroup] = (),
        recent: Sequence[WindowSnapshot] = (),
    ) -> None:
        """Forget everything and take the stored state of another epoch."""
        self._put_all({value.isin: value for value in values})
        self.named = len(self.numbers)
        self.groups.catch_up(groups, recent)
        self.position = self.complete = position
        self.clock_ms = position.window or 0
        self.is_in_parts = False
        self._gate = OncePerWindow(position.window)

    def retain(self, isins: Iterable[str]) -> None:
        """Forget all other instruments."""
        self._put_all({i: self._rows[i] for i in isins if i in self._rows})

    def _instruments(self) -> Iterable[str]:
        if not self._series:
            return self._rows
        return (isin for isin in self._rows if not is_series(isin))

    def _put(self, value: LastValue) -> None:
        if value.isin not in self._rows and is_series(value.isin):
            self._series.setdefault(instrument_of(value.isin), []).append(value.isin)
        self._rows[value.isin] = value
        self.numbers.setdefault(value.isin, len(self.numbers))

    def _put_all(self, rows: dict[str, LastValue]) -> None:
        self._rows, self._series = {}, {}
        for value in rows.values():
            self._put(value)

    def _day_with(self, row: Row) -> bytes:
        """Return the text of the day as of a row, empty if it is not known."""
        if row.day:
            return row.day.removeprefix(STARTS)
        before = self._rows.get(row.isin)
        if before is None or not before.day:
            return b""
        return day_after(before.day, row.row_sums)

    def _is_news(self, isin: str, version: bytes, offset: int) -> bool:
        row = self._rows.get(isin)
        return row is None or (version, offset) > (row.version, row.offset)

    def _move(
        self,
        to: Position,
        fresh: list[Row],
        stale: int,
        groups: Mapping[str, bytes],
        late: int = 0,
    ) -> News:
        gate, before = self._gate, self.complete.offset
        rows = gate.hand_out(to.window or 0, fresh)
        held = len(fresh) - len(rows) if gate.is_in_parts else 0
        self.is_in_parts = gate.is_in_parts
        self.position = Position(to.epoch, to.offset, gate.window)
        self.clock_ms = max(self.clock_ms, gate.window or 0)
        # Clients resume from here: what is held back has to lie behind it.
        self.complete = self.position
        if gate.is_holding:
            self.complete = Position(to.epoch, before, gate.window)
        windows = self.complete.offset - before
        first_new, self.named = self.named, len(self.numbers)
        return News(rows, windows, stale, held, groups, late, first_new)
