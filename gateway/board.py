"""The board: the last value of every issue, and what counts as news. Does no I/O."""

from collections.abc import Iterable
from dataclasses import dataclass

from throttle.snapshot import LastValue, Row, WindowSnapshot

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


class Board:
    """The newest row of every issue, as of ``position``.

    The order guard lives here: within an epoch a row is only ever replaced by one
    with a greater version, however often and in whatever order updates arrive.
    """

    def __init__(self) -> None:
        self.position = Position()
        self.window_ms = DEFAULT_WINDOW_MS
        self._rows: dict[str, LastValue] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def get(self, isin: str) -> LastValue | None:
        """Return the issue's last value, or None if it never traded."""
        return self._rows.get(isin)

    def isins(self) -> list[str]:
        """Return every issue that has a value, in order."""
        return sorted(self._rows)

    def changed_since(self, offset: int) -> list[str]:
        """Return the issues that changed after ``offset`` of this epoch, in order."""
        return sorted(i for i, row in self._rows.items() if row.offset > offset)

    def apply(self, snapshot: WindowSnapshot) -> list[Row]:
        """Take an update in and return the rows that are news; the others are stale.

        The caller has checked that it follows ``position``.
        """
        fresh = [row for row in snapshot.rows if self._is_newer(row.isin, row.version)]
        for row in fresh:
            self._rows[row.isin] = LastValue(
                row.isin, row.version, snapshot.offset, row.body
            )
        self.position = Position(snapshot.epoch, snapshot.offset, snapshot.window)
        return fresh

    def catch_up(self, position: Position, values: Iterable[LastValue]) -> list[Row]:
        """Take in the stored state of the same epoch and return the rows that are news.

        Their ``trades`` is 0: how many trades were missed is not known.
        """
        fresh = [v for v in values if self._is_newer(v.isin, v.version)]
        self._rows.update((value.isin, value) for value in fresh)
        self.position = position
        return [Row(value.isin, value.version, 0, value.body) for value in fresh]

    def replace(self, position: Position, values: Iterable[LastValue]) -> None:
        """Forget everything and take the stored state of another epoch."""
        self._rows = {value.isin: value for value in values}
        self.position = position

    def _is_newer(self, isin: str, version: bytes) -> bool:
        known = self._rows.get(isin)
        return known is None or version > known.version
