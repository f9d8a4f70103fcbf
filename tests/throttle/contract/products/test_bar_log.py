"""Entries of the bar log: of one day each, and exact."""

import pytest

from tests.gateway.bar_publisher import make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.products.bar_log import BarLogEntry, entries_of

MINUTES_A_DAY = 1_440


def entry(lines: bytes) -> BarLogEntry:
    """Return an entry as it is read from Redis."""
    fields = {b"epoch": b"b7x1", b"number": b"7", b"published": b"12", b"bars": lines}
    return BarLogEntry.decode(fields)


def test_bars_come_back_as_they_were() -> None:
    bars = [make_bar(SAMSUNG, closed=True), make_bar(HYNIX, 1, closed=True, revision=2)]
    [lines] = entries_of(bars)
    logged = entry(lines)
    assert (logged.epoch, logged.number, logged.published_us) == ("b7x1", 7, 12)
    assert logged.bars() == bars
    assert entries_of([]) == []


def test_an_entry_is_of_one_day() -> None:
    """A bar that ends at midnight is of the day before."""
    last, first = (make_bar(minute=MINUTES_A_DAY + n, closed=True) for n in (-1, 0))
    other = make_bar(HYNIX, MINUTES_A_DAY - 1, closed=True)
    assert [entry(lines).bars() for lines in entries_of([first, last, other])] == [
        [last, other],
        [first],
    ]


def test_what_no_job_wrote_is_refused() -> None:
    with pytest.raises(ValueError, match="no field b'epoch'"):
        BarLogEntry.decode({b"bars": b""})
    with pytest.raises(ValueError, match="unpack"):
        entry(b"nonsense").bars()
