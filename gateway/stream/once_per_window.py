"""Which rows may go out now, and which wait for the next window. Pure."""

from throttle.contract.snapshot import Row


class OncePerWindow:
    """Hands every instrument out at most once per window, the newest row of it at last.

    Several jobs may publish to one stream, each a part of the trades: the second
    update of a window may hold instruments that the first one held already, and a job
    that is behind publishes windows that others have passed. ``window`` is the newest
    end of a window, whoever published it. Of an instrument that was handed out in it,
    further rows are held back, newest wins, until the first update of a later window.
    Their sums are folded. A client may have been sent a snapshot meanwhile, which has
    them: so they say the day, as if it began with them.

    Where each window comes in one update nothing is held, copied or looked up.
    """

    def __init__(self, window: int | None = None) -> None:
        self.window = window
        self.is_in_parts = False
        """Whether a further update came after the one that began the window."""
        self._handed_out: list[Row] = []
        self._held: dict[str, Row] = {}

    @property
    def is_holding(self) -> bool:
        """Whether any row is held back."""
        return bool(self._held)

    def hand_out(self, window: int, fresh: list[Row]) -> list[Row]:
        """Take the news of an update in and return the rows that may go out now.

        None of ``fresh`` is older than a row of its instrument before.
        """
        if self.window is None or window > self.window:
            self.window = window
            self.is_in_parts = False
            self._handed_out = self._release(fresh) if self._held else fresh
            return self._handed_out
        self.is_in_parts = True
        isins = {row.isin for row in self._handed_out}
        rows = [row for row in fresh if row.isin not in isins]
        for row in fresh:
            if row.isin in isins:
                held = _added(row, self._held.get(row.isin))
                self._held[row.isin] = held.as_starting()
        self._handed_out = [*self._handed_out, *rows]
        return rows

    def _release(self, fresh: list[Row]) -> list[Row]:
        held, self._held = self._held, {}
        return [
            *(_added(row, held.pop(row.isin, None)) for row in fresh),
            *held.values(),
        ]


def _added(row: Row, held: Row | None) -> Row:
    """Return a row that also stands for the trades of the one it takes over from."""
    return row if held is None else row.merge(held)
