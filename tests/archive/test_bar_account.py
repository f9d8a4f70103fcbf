"""Every bar of the log is stored, by day and width."""

from dataclasses import replace

from archive.bar_account import BarCounts, LoggedBatch, account_for_bars
from archive.contract.archive_gap import ArchiveGap
from archive.contract.segment import Coverage, Segment, day_of
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import SAMSUNG
from throttle.contract.bars import Bar

DAY = day_of(FIRST_MS + MINUTE_MS)


def batch(number: int, *bars: Bar, epoch: str = "b7x1") -> LoggedBatch:
    """Return an entry of the log."""
    return LoggedBatch(epoch, number, bars)


def covering(*numbers: int) -> Coverage:
    """Return what an archive covers that has these entries."""
    return Coverage(Segment(n, n, n, "b7x1", 1, 1) for n in numbers)


def key(minute: int, width_ms: int = MINUTE_MS) -> tuple[str, int, int]:
    """Return the key of a bar."""
    return SAMSUNG, FIRST_MS + minute * MINUTE_MS, width_ms


def test_what_is_equal_is_right_by_day_and_width() -> None:
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
        (DAY, 1_000): BarCounts(logged=1, stored=1, kept=1),
        (DAY, MINUTE_MS): BarCounts(logged=2, stored=2, kept=7),
    }


def test_what_waits_or_came_before_is_no_difference() -> None:
    """Of an amendment that waits, the bar before it is stored."""
    log = [
        batch(1, make_bar(minute=0)),
        batch(2, make_bar(minute=1)),
        batch(3, make_bar(minute=1, trades=5), make_bar(minute=2)),
    ]
    found = account_for_bars(log, covering(2), {key(1): (0, 4)}, {})
    assert found.is_right
    assert found.days[DAY, MINUTE_MS] == BarCounts(logged=1, stored=1, waiting=1)
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


def test_a_gap_is_a_note() -> None:
    gap = ArchiveGap("trimmed", "b7x1", 3, 1, 9, "bars")
    found = account_for_bars([], covering(), {}, {}, [gap])
    assert found.is_right
    assert "3 batches of bars of epoch b7x1" in found.notes[0]
