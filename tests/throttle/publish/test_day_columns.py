"""Days that begin within a batch: as columns they are what they are row by row."""

from hypothesis import given
from hypothesis import strategies as st

from ingest.trade import Trade
from tests.throttle.conflated import as_conflated, rows_between
from tests.throttle.payloads import (
    ISINS,
    MAX_AHEAD_MS,
    make_chunk,
    plain_trades,
)
from throttle.contract.cut import Cut
from throttle.contract.day_so_far import DaySoFar
from throttle.contract.row_sums import Amounts, RowSums
from throttle.contract.session_calendar import SessionCalendar, SessionCalendars
from throttle.publish.day_columns import beginning, from_columns
from throttle.publish.day_rows import DayBegins, days_after
from throttle.window.batch import Batch, assemble

W = 20_000
WINDOWS = 5
START_MS = 1_773_964_800_000
END_MS = START_MS + WINDOWS * W

Entry = tuple[int, Trade]
entries = st.tuples(st.integers(0, WINDOWS * W - 1), plain_trades)
partitions = st.lists(st.lists(entries, max_size=12), min_size=1, max_size=2)

# The batch begins at midnight in UTC.
WHOLE, WITHIN = (SessionCalendar("UTC", begins) for begins in ("00:00", "00:01"))
OLD = DaySoFar(
    START_MS - 86_400_000, RowSums(3, Amounts(3, 30, 10, 10)), b"0" * 32, b"10"
)
TODAY = OLD._replace(start_ms=START_MS - START_MS % 86_400_000)
LATER = OLD._replace(start_ms=TODAY.start_ms + 60_000)


def make_batch(of_partitions: list[list[Entry]]) -> Batch:
    """Make a batch of the entries of each partition: append time, trade."""
    chunks = [
        make_chunk(
            [(START_MS + ms, trade.to_wire()) for ms, trade in sorted(one, key=_time)]
        )
        for one in of_partitions
    ]
    zeros = (0,) * len(chunks)
    cuts = Cut(START_MS, zeros, zeros), Cut(END_MS, (1 << 62,) * len(chunks), zeros)
    return assemble(as_conflated(rows_between(*cuts, chunks, MAX_AHEAD_MS), W), W)


def _time(entry: Entry) -> int:
    return entry[0]


@given(
    partitions,
    st.sampled_from([None, OLD, TODAY, LATER]),
    st.sampled_from([WHOLE, WITHIN]),
)
def test_they_are_what_they_are_row_by_row(
    of_partitions: list[list[Entry]],
    before: DaySoFar | None,
    calendar: SessionCalendar,
) -> None:
    """Sums, opening and the text of the row that begins the day."""
    batch = make_batch(of_partitions)
    known = {isin: before for w in batch.windows for isin in w.rows}
    begins = DayBegins(SessionCalendars(calendar))
    openings = batch.traded.openings(known)
    traded = batch.traded.by_instrument()
    days, starting = beginning(traded, openings, known, begins, END_MS)
    found = from_columns(days)
    of_them = {isin: known[isin] for isin in found}
    expected, of_rows = days_after(batch, of_them, begins)
    assert (found, starting) == (expected, of_rows)
    if before is LATER or (before is TODAY and calendar is WHOLE):
        assert not found


def test_a_day_begins_so_if_trades_come_in_their_order() -> None:
    """Whatever comes before what has opened it is left to the other way."""
    ordered = [
        (W * n + 1, trade_at(START_MS + W * n, price=f"{n + 1}")) for n in range(3)
    ]
    for entries_, many in (
        (ordered, 1),
        ([*ordered, (2 * W + 5, trade_at(START_MS - 1))], 0),
    ):
        batch = make_batch([entries_])
        assert len(batch.traded.openings(ISINS)) == many


def trade_at(time_ms: int, price: str = "10") -> Trade:
    """Make a trade of the first instrument."""
    return Trade(ISINS[0], time_ms * 1_000, 1, price, "1")
