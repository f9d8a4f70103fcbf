"""The made-up log."""

from itertools import pairwise

from ingest.tradelog.contract import Chunk, LogInfo, Tail
from throttle.contract.cut import advance, next_end, origin
from throttle.spark.warmup import SyntheticLog
from throttle.window import vector_check
from throttle.window.checked_rows import trade_rows

W = 2_000
INFO = LogInfo("id", 4, 1_773_964_801_234)
LOG = SyntheticLog(INFO, W, live=3)
START_MS = 1_773_964_800_000


def window(before_ms: int, end_ms: int, partition: int = 0) -> Chunk:
    """Read one made-up window of one partition."""
    after, upto = (LOG.tail(ms).positions[partition] for ms in (before_ms, end_ms))
    [(found, chunk)] = LOG.read({partition: (after, upto)})
    assert (found, chunk.upto, chunk.blanks) == (partition, upto, 0)
    return chunk


def test_every_made_up_trade_is_valid_and_in_its_window() -> None:
    """Warming up takes the path of real trades, not that of refused or odd ones."""
    for before, end in pairwise(START_MS + n * W for n in range(4)):
        chunk = window(before, end)
        assert len(chunk) == 450
        assert all(before <= ms < end for ms in chunk.append_ms.to_pylist())
        assert all(vector_check.has_wire_form(chunk.payloads).to_pylist())
        made = trade_rows(chunk, 0, before, end, 5_000)
        assert made["reason"].null_count == made.num_rows == 450


def test_the_made_up_log_starts_at_its_first_window() -> None:
    """A job on it begins with its first trade, and its counts are those it read."""
    start = origin(LOG.head(), LOG.clock_ms(), W)
    assert (start.end_ms, start.positions) == (START_MS, (0,) * 4)
    assert start.partitions == (0, 1, 2, 3)
    first = advance(start, START_MS + W, LOG.tail(START_MS + W))
    assert first.positions == first.counts == (450,) * 4


def test_live_windows_end_one_by_one_and_a_backlog_at_once() -> None:
    """Each batch of the warm-up has the shape that it is to warm up."""
    log = SyntheticLog(INFO, W, live=2, behind=5)
    cuts = [origin(log.head(), log.clock_ms(), W)]
    while cuts[-1].end_ms < START_MS + 7 * W:
        end_ms = next_end(cuts[-1].end_ms, log.clock_ms(), W, 3)
        assert not log.is_read(cuts[-1].end_ms)
        cuts.append(advance(cuts[-1], end_ms, log.tail(end_ms)))
    assert log.is_read(cuts[-1].end_ms)
    windows = [(b.end_ms - a.end_ms) // W for a, b in pairwise(cuts)]
    assert windows == [1, 1, 3, 2]


def test_the_made_up_log_ends() -> None:
    """Its clock stands at the end of the last window: nothing can be cut after it."""
    log = SyntheticLog(INFO, W, live=3)
    for n in range(1, 5):
        tail: Tail = log.tail(START_MS + n * W)
        assert (tail.clock_ms >= START_MS + n * W) == (n <= 3)
    assert log.clock_ms() == START_MS + 3 * W
    log.trim(dict.fromkeys(range(4), 0), 0)
