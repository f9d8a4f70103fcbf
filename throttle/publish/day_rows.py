"""What a batch adds to the day so far of its instruments, one by one. Pure.

For those that begin a day, or whose amounts are in no column; the others go by columns
(``day_columns.py``).
"""

from collections.abc import Mapping

import pyarrow as pa

from throttle.contract.day_so_far import STARTS, DaySoFar
from throttle.contract.row_sums import RowSums
from throttle.contract.session_calendar import SessionCalendars
from throttle.window.batch import Batch
from throttle.window.group_rows import Place
from throttle.window.traded import FirstTrade


class DayBegins:
    """When the days begin that moments are in, asked once for each calendar."""

    def __init__(self, calendars: SessionCalendars) -> None:
        self._calendars = calendars
        self._known: dict[tuple[str, int], int] = {}

    def of_all(self, isins: pa.ChunkedArray, end_ms: int) -> pa.Scalar | pa.Array:
        """Return ``of`` as a column; as one number if there is one calendar."""
        if not self._calendars.named:
            return pa.scalar(self.of("", end_ms), pa.int64())
        begins_ms = [self.of(isin, end_ms) for isin in isins.to_pylist()]
        return pa.array(begins_ms, pa.int64())

    def of(self, isin: str, end_ms: int) -> int:
        """Return when the instrument's day began that a window belongs to, ms.

        It is the day that the window's last millisecond is in.
        """
        place = isin[:2], end_ms
        begin_ms = self._known.get(place)
        if begin_ms is None:
            begin_ms, _ = self._calendars.of(isin).day_of(end_ms - 1)
            self._known[place] = begin_ms
        return begin_ms


def days_after(
    batch: Batch, known: Mapping[str, DaySoFar | None], begins: DayBegins
) -> tuple[dict[str, DaySoFar], dict[Place, bytes]]:
    """Return the days of the ``known`` instruments once a batch is published.

    With them comes the text of each row that starts a day, or changes its open. A row
    of a day before, which a job that is behind may still publish, belongs to the day
    that has begun. A day begins with a trade: a row without one, which only takes back,
    leaves the day before the newest, and an instrument without a day has none.
    """
    days: dict[str, DaySoFar] = {}
    starting: dict[Place, bytes] = {}
    firsts = batch.traded.firsts(known) if known else {}
    for isin, day in known.items():
        placed = ((window.end_ms, window.rows.get(isin)) for window in batch.windows)
        for end_ms, row in ((end_ms, one[1]) for end_ms, one in placed if one):
            if not row.row_sums.trades:
                continue
            start_ms, before = begins.of(isin, end_ms), day
            day = _with_row(day, start_ms, row.row_sums, firsts.get((end_ms, isin)))
            if before is None or _opening(before) != _opening(day):
                starting[end_ms, isin] = STARTS + day.text()
        if day is not None:
            days[isin] = day
    return days, starting


def _opening(day: DaySoFar) -> tuple[int, bytes, bytes]:
    return day.start_ms, day.first, day.open


def _with_row(
    day: DaySoFar | None, start_ms: int, sums: RowSums, first: FirstTrade | None
) -> DaySoFar:
    """Return a day after a row; ``first`` is the row's first trade, if it has one."""
    opened = FirstTrade(b"", b"") if first is None else first
    if day is None or start_ms > day.start_ms:
        return DaySoFar(start_ms, sums, *opened)
    before = FirstTrade(day.first, day.open)
    if first is None or (day.first and before.order <= first.order):
        opened = before
    return DaySoFar(day.start_ms, day.sums.fold(sums), *opened)
