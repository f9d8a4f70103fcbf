"""Entries are taken as their logs have them, and stored as they follow each other."""

import pytest

from archive.contract.logged import LoggedBars, runs_of, segment_of
from archive.contract.segment import Segment
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.products.bar_log import entries_of

DAY_MS = 86_400_000


def entry(lines: bytes) -> LoggedBars:
    fields = {b"epoch": b"b7x1", b"number": b"7", b"published": b"12", b"bars": lines}
    return LoggedBars.of_entry(b"1-0", fields)


def test_an_entry_knows_when_its_bars_end() -> None:
    bars = [make_bar(SAMSUNG, 2, closed=True), make_bar(HYNIX, closed=True)]
    [lines] = entries_of(bars)
    logged = entry(lines)
    assert (logged.epoch, logged.offset, logged.published_us) == ("b7x1", 7, 12)
    ends = FIRST_MS + MINUTE_MS, FIRST_MS + 3 * MINUTE_MS
    assert (logged.first_ms, logged.last_ms) == ends
    assert b"\n".join(logged.lines) == lines
    assert logged.size_bytes == len(lines) - 1


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (b"nonsense", "entry 7 of epoch b7x1: a line is no bar"),
        (b"KR7005930003 0 soon 1", "entry 7 of epoch b7x1: a line is no bar"),
        (b"A 0 86400000 1\nA 0 86400001 1", "bars of 1970-01-01 and of 1970-01-02"),
    ],
)
def test_what_no_analytics_job_wrote_is_refused(lines: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        entry(lines)


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
