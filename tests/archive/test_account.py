"""Every published window and bar is stored, by day."""

from dataclasses import replace

import pytest

from archive.account import (
    BarCounts,
    LoggedBatch,
    PartitionCounts,
    Place,
    StoredDay,
    WindowRows,
    account_for,
    account_for_bars,
    batch_differences,
    days_of,
    partition_counts,
    stored_day,
)
from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Coverage, Segment, day_of
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import SAMSUNG
from throttle.contract.bars import Bar
from throttle.contract.cut import Cut
from throttle.contract.ledger import BatchEntry, Books

DAY_MS = 86_400_000


def windows(*offsets: int, day: int = 0, rows: int = 3) -> dict[Place, WindowRows]:
    return {("k3x9", o): WindowRows(day * DAY_MS + o * 2_000, rows) for o in offsets}


def stored(
    windows: dict[Place, WindowRows], told: dict[Place, WindowRows] | None = None
) -> StoredDay:
    """Return a day of which the archive says what is right, or what others have."""
    said = told or windows
    return {place: (window, said[place].rows) for place, window in windows.items()}


def test_what_is_equal_is_right_by_day() -> None:
    log = windows(1, 2, 3) | windows(4, day=1)
    found = account_for(log, [stored(windows(1, 2, 3)), stored(windows(4, day=1))])
    assert found.is_right
    first, second = found.days.values()
    assert (first.published_windows, first.stored_windows) == (3, 3)
    assert first.published_rows == first.stored_rows == 9
    assert (second.kept_windows, second.kept_rows) == (1, 3)


def test_what_waits_or_came_before_is_no_difference() -> None:
    """The next flush brings it; the archive began later."""
    log = windows(1, 2, 3, 4, 5)
    found = account_for(log, [stored(windows(3, 4))])
    assert found.is_right
    [day] = found.days.values()
    assert (day.published_windows, day.stored_windows, day.waiting_windows) == (3, 2, 1)
    assert day.published_rows == day.stored_rows == 6


def test_a_missing_window_a_missing_row_and_a_double_row_are_told() -> None:
    log = windows(1, 2, 3, 4)
    kept = windows(1) | windows(3, rows=2) | windows(4, rows=4)
    found = account_for(log, [stored(kept, windows(1, 3, 4))])
    assert found.problems == [
        "offset 3 of epoch k3x9: 2 rows are stored, the window has 3",
        "offset 4 of epoch k3x9: 4 rows are stored, the window has 3",
        "offset 2 of epoch k3x9: is not stored",
        "offset 3 of epoch k3x9: 3 rows were published, 2 are stored",
        "offset 4 of epoch k3x9: 3 rows were published, 4 are stored",
        "1970-01-01: 4 windows with 12 rows were published, 3 with 9 are stored",
    ]


def test_a_gap_is_a_note() -> None:
    found = account_for({}, [], [ArchiveGap("trimmed", "k3x9", 3, 1, 9)])
    assert found.is_right
    assert "3 windows of epoch k3x9" in found.notes[0]
    gap = ArchiveGap("trimmed", "b7x1", 3, 1, 9, "bars")
    of_bars = account_for_bars([], covering(), {}, {}, [gap])
    assert of_bars.is_right
    assert "3 batches of bars of epoch b7x1" in of_bars.notes[0]


def test_what_cannot_be_read_is_a_difference() -> None:
    account = account_for({}, [], [ArchiveGap("damaged", "k3x9", 3, 1, 9)])
    assert not account.is_right
    assert account.problems == [
        "3 windows of epoch k3x9 before 9 cannot be read: their file is damaged"
    ]


def test_books_of_a_batch_are_held_to_what_is_stored() -> None:
    """Of all its windows, or it is left out; whichever partitions its rows are of."""
    cut = Cut(4_000, (1, 1), (1, 1))
    books = Books(read=4, published=4), Books(read=3, published=2)
    batch = BatchEntry(2, 1, 1, cut, cut, 2, books)
    log = windows(1, 2)
    assert list(batch_differences("job", [batch], log, windows(1))) == []
    assert list(batch_differences("job", [batch], log, log)) == []
    more = windows(1, 2, rows=4)
    assert list(batch_differences("job", [batch], log, more)) == [
        "job job, batch 2: 6 rows of news were published, 0 at most that restate; "
        "8 are stored"
    ]


@pytest.mark.parametrize(
    ("rows", "is_right"), [(5, False), (6, True), (8, True), (9, False)]
)
def test_rows_that_restate_are_in_the_books_by_their_trades(
    rows: int, *, is_right: bool
) -> None:
    """At most a row for each of them, none where the instrument has news as well."""
    cut = Cut(2_000, (1,), (1,))
    books = Books(read=8, published=6, stale=1, not_last=1)
    batch = BatchEntry(1, 1, 1, cut, cut, 1, (books,))
    stored = windows(1, rows=rows)
    differences = list(batch_differences("job", [batch], stored, stored))
    assert (differences == []) == is_right


@pytest.mark.parametrize(
    ("rows", "series", "is_right"), [(2, 0, True), (3, 0, False), (5, 1, False)]
)
def test_a_trade_that_is_taken_back_restates_a_row(
    rows: int, series: int, *, is_right: bool
) -> None:
    """Of its instrument, and of each series that it was in."""
    cut = Cut(2_000, (1,), (1,))
    batch = BatchEntry(1, 1, 1, cut, cut, 1, (Books(read=2, taken_back=2),))
    stored = windows(1, rows=rows)
    differences = list(batch_differences("job", [batch], stored, stored, series))
    assert (differences == []) == is_right


def test_a_run_of_windows_may_go_over_days() -> None:
    runs = [
        Segment(0, 1, 9, "k3x9", 1, 2 * DAY_MS + 1),
        Segment(1, 1, 9, "next", DAY_MS, DAY_MS),
    ]
    assert [day.day for day in days_of(runs)] == [1, 2, 3]


def test_a_stored_day_has_the_rows_of_its_windows() -> None:
    place, quiet = ("k3x9", 7), ("k3x9", 8)
    rows = [(place, None, 3)]
    day = stored_day([(place, 2_000, 3), (quiet, 4_000, 0)], rows)
    assert day == {place: (WindowRows(2_000, 3), 3), quiet: (WindowRows(4_000, 0), 0)}
    assert partition_counts(rows, day) == {}


def test_a_topic_is_counted_by_day_and_partition() -> None:
    """A window in each partition that has rows of it; one that came meanwhile waits."""
    first, second, tomorrow, new = (("k3x9", offset) for offset in (1, 2, 3, 4))
    rows = [
        *((first, 1, 2), (first, 0, 1), (second, 1, 4)),
        *((tomorrow, 0, 5), (new, 0, 1)),
    ]
    windows = [(first, 2_000, 3), (second, 4_000, 4), (tomorrow, DAY_MS + 2_000, 5)]
    day = stored_day(windows, rows)
    assert [kept.rows for kept, _ in day.values()] == [3, 4, 5]
    today = day_of(2_000)
    assert list(partition_counts(rows, day).items()) == [
        ((today, 0), PartitionCounts(1, 1)),
        ((today, 1), PartitionCounts(2, 6)),
        ((day_of(DAY_MS + 2_000), 0), PartitionCounts(1, 5)),
    ]


DAY = day_of(FIRST_MS + MINUTE_MS)


def batch(number: int, *bars: Bar, epoch: str = "b7x1") -> LoggedBatch:
    return LoggedBatch(epoch, number, bars)


def covering(*numbers: int) -> Coverage:
    return Coverage(Segment(n, n, n, "b7x1", 1, 1) for n in numbers)


def key(minute: int, width_ms: int = MINUTE_MS) -> tuple[str, int, int]:
    return SAMSUNG, FIRST_MS + minute * MINUTE_MS, width_ms


def test_bars_that_are_equal_are_right_by_day_and_width() -> None:
    """An amended bar is one bar; one that is newer is as good."""
    short = replace(make_bar(minute=2), end_ms=FIRST_MS + 2 * MINUTE_MS + 1_000)
    log = [
        batch(1, make_bar(minute=0), make_bar(minute=1), short),
        batch(2, make_bar(minute=0, trades=3, revision=1)),
    ]
    stored = {key(0): (1, 3), key(1): (0, 9), key(2, 1_000): (0, 4)}
    found = account_for_bars(
        log, covering(1, 2), stored, {(DAY, MINUTE_MS): 7, (DAY, 1_000): 1}
    )
    assert found.is_right
    assert found.days == {
        (DAY, 1_000): BarCounts(logged_bars=1, stored_bars=1, kept_bars=1),
        (DAY, MINUTE_MS): BarCounts(logged_bars=2, stored_bars=2, kept_bars=7),
    }


def test_bars_that_wait_or_came_before_are_no_difference() -> None:
    """Of an amendment that waits, the bar before it is stored."""
    log = [
        batch(1, make_bar(minute=0)),
        batch(2, make_bar(minute=1)),
        batch(3, make_bar(minute=1, trades=5), make_bar(minute=2)),
    ]
    found = account_for_bars(log, covering(2), {key(1): (0, 4)}, {})
    assert found.is_right
    assert found.days[DAY, MINUTE_MS] == BarCounts(
        logged_bars=1, stored_bars=1, waiting_bars=1
    )
    assert account_for_bars(log, covering(), {}, {}).is_right


def test_a_missing_entry_bar_and_amendment_are_told() -> None:
    log = [
        batch(1, make_bar(minute=0)),
        batch(2, make_bar(minute=1)),
        batch(3, make_bar(minute=0, trades=1_005, revision=2)),
        batch(4, make_bar(minute=3)),
    ]
    found = account_for_bars(log, covering(1, 3, 4), {key(0): (0, 4)}, {})
    place = f"bar of {SAMSUNG} that begins at"
    assert found.problems == [
        "entry 2 of epoch b7x1 of the bar log: is not stored",
        f"{place} {FIRST_MS}, 60000 ms: it was published as revision 2 with 1,005 "
        "trades, the stored one is revision 0 with 4 trades",
        f"{place} {FIRST_MS + 3 * MINUTE_MS}, 60000 ms: it was published as revision 0 "
        "with 4 trades, it is not stored",
    ]
