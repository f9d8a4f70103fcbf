"""What is stored in one step follows each other, and is of one day."""

from archive.contract.logged_bars import LoggedBars
from archive.contract.logged_run import runs_of, segment_of
from archive.contract.segment import Segment

DAY_MS = 86_400_000


def logged(offset: int, end_ms: int = 60_000, epoch: str = "b7x1") -> LoggedBars:
    """Return an entry whose bars end between 1 ms before a moment, and then."""
    return LoggedBars(epoch, offset, offset * 1_000, end_ms - 1, end_ms, (b"12345",))


def test_a_hole_an_epoch_and_a_day_end_a_run() -> None:
    entries = [
        *(logged(1), logged(2), logged(4)),
        *(logged(5, epoch="next"), logged(6, DAY_MS, "next")),
        logged(7, DAY_MS + 60_000, "next"),
    ]
    assert [[e.offset for e in run] for run in runs_of(entries)] == [
        *([1, 2], [4]),
        *([5, 6], [7]),
    ]


def test_a_segment_says_which_it_holds() -> None:
    """From the earliest end to the latest, whatever order they have."""
    run = [logged(3, 180_000), logged(4, 60_000)]
    assert segment_of(run) == Segment(3, 3, 4, "b7x1", 59_999, 180_000)
    assert run[0].size_bytes == 5
