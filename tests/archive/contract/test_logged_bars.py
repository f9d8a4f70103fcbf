"""Bars are taken from the bar log as its entries have them."""

import pytest

from archive.contract.logged_bars import LoggedBars
from tests.gateway.bar_publisher import FIRST_MS, MINUTE_MS, make_bar
from tests.gateway.samples import HYNIX, SAMSUNG
from throttle.contract.products.bar_log import entries_of


def entry(lines: bytes) -> LoggedBars:
    """Return an entry as it is read from Redis."""
    fields = {b"epoch": b"b7x1", b"number": b"7", b"published": b"12", b"bars": lines}
    return LoggedBars.decode(fields)


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
    """With its number."""
    with pytest.raises(ValueError, match=words):
        entry(lines)
