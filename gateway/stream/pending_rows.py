"""Rows that wait to be sent as one, and what they say together. Pure.

Clients that fell behind with the same update wait with the same objects: a row is
decoded once, and two are folded once, however many clients are sent them as one.
"""

from collections.abc import Iterable, Mapping

from throttle.contract.day_so_far import day_after
from throttle.contract.row_sums import RowSums
from throttle.contract.snapshot import Row

AT_ONCE = 100
"""Most folds in one step: a millisecond or two."""


class PendingRow:
    """A row of an instrument, or an ``older`` and a ``newer`` one, sent as one.

    What they say together is worked out when somebody asks for it first.
    """

    __slots__ = ("_day", "_parts", "_row", "_starts_day", "_sums", "_text")

    def __init__(
        self, row: Row | None, parts: "tuple[PendingRow, PendingRow] | None" = None
    ) -> None:
        self._row = row
        self._parts = parts
        self._sums: RowSums | None = None
        self._text: bytes | None = None
        if row is not None:
            self._day, self._starts_day = row.day, row.starts_day
        elif parts is not None:
            older, newer = parts
            self._starts_day = older._starts_day or newer._starts_day
            self._day = newer._day
            if older._starts_day and not newer._day:
                self._day = day_after(older._day, newer.fold())

    @property
    def day(self) -> bytes:
        """The text of the day that the item has to say, empty if it says none."""
        return self._day if self._starts_day else b""

    @property
    def is_folded(self) -> bool:
        """Whether ``text`` costs nothing."""
        return self._row is not None or self._text is not None

    def text(self, body: bytes) -> bytes:
        """Return what an item with this body says of all the trades.

        The body of another row, a newer one, says nothing of them: the text says all.
        """
        if self._row is not None and self._row.body == body:
            return self._row.sums
        if self._text is None:
            self._text = self.fold().encode()
        return self._text

    def fold(self) -> RowSums:
        """Return the sums of all the trades."""
        if self._sums is None:
            if self._row is not None:
                self._sums = self._row.row_sums
            elif self._parts is not None:
                older, newer = self._parts
                self._sums = newer.fold().fold(older.fold())
                # Or what came before would stay for as long as a client is slow.
                self._parts = None
        assert self._sums is not None
        return self._sums


class SharedRows:
    """The rows of an update by instrument, for all clients that are sent them later."""

    __slots__ = ("_alone", "_merged", "_rows")

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self._rows = rows
        self._alone: dict[str, PendingRow] = {}
        # By the identity of the older one, which is kept so that it remains the only.
        self._merged: dict[int, tuple[PendingRow, PendingRow]] = {}

    def get(self, name: str, older: PendingRow | None) -> PendingRow | None:
        """Return an instrument's row, with an older one as one; None of a group."""
        pending = self._alone.get(name)
        if pending is None:
            row = self._rows.get(name)
            if row is None:
                return None
            pending = self._alone[name] = PendingRow(row)
        if older is None:
            return pending
        both = self._merged.get(id(older))
        if both is None:
            if not older.is_folded:
                older.fold()
            both = older, PendingRow(None, (older, pending))
            self._merged[id(older)] = both
        return both[1]


class PendingRows:
    """What waits of some instruments and groups, by name: of a group, that it does.

    Whoever has added an update calls ``fold_some`` until everything is folded. Else the
    next update finds it undone, and does it at once.
    """

    __slots__ = ("_unfolded", "by_name")

    def __init__(self) -> None:
        self.by_name: dict[str, PendingRow | None] = {}
        self._unfolded: list[PendingRow] = []

    def add(self, rows: SharedRows, names: Iterable[str]) -> None:
        """Add what an update has of these instruments and groups."""
        by_name, unfolded = self.by_name, []
        for name in names:
            row = by_name[name] = rows.get(name, by_name.get(name))
            if row is not None and not row.is_folded:
                unfolded.append(row)
        self._unfolded = unfolded

    def retain(self, names: set[str]) -> None:
        """Forget all others."""
        self.by_name = {n: row for n, row in self.by_name.items() if n in names}

    def take(self) -> Mapping[str, PendingRow | None]:
        """Return everything by name; nothing waits then."""
        by_name, self.by_name, self._unfolded = self.by_name, {}, []
        return by_name

    @property
    def is_folded(self) -> bool:
        """Whether everything is folded."""
        return not self._unfolded

    def fold_some(self) -> bool:
        """Fold a part of what waits; say whether everything is folded."""
        for row in self._unfolded[-AT_ONCE:]:
            row.text(b"")
        del self._unfolded[-AT_ONCE:]
        return not self._unfolded
