"""The made-up log."""

from itertools import pairwise

from ingest.log import LogInfo
from throttle.rows import trade_row
from throttle.warmup import SyntheticLog

LOG = SyntheticLog(LogInfo("id", 4, 1_773_964_801_234), 2_000, windows=3, trades=1_800)


def test_every_made_up_trade_is_valid_and_in_its_window() -> None:
    """Warming up takes the path of real trades, not that of refused ones."""
    start = LOG.oldest_ms()
    ends = [start + n * 2_000 for n in range(4)]
    for before, end in pairwise(ends):
        after, upto = LOG.tail(before).positions[0], LOG.tail(end).positions[0]
        assert upto - after == 450
        [entries] = LOG.read(0, after, upto)
        assert all(before <= entry.append_time_ms < end for entry in entries)
        rows = [trade_row(entry, 0, before, 5_000) for entry in entries]
        assert [row[7] for row in rows] == [None] * 450


def test_the_made_up_log_ends() -> None:
    """Its clock stands at the end of the last window: nothing can be cut after it."""
    assert LOG.clock_ms() == LOG.oldest_ms() + 3 * 2_000
    LOG.trim((0, 0, 0, 0), 0)
