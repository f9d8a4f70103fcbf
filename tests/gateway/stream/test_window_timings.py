"""The newest windows: how late each was published and handed out."""

from gateway.stream.window_timings import KEPT, WindowTimings
from tests.gateway.samples import EPOCH, make_row
from throttle.contract.snapshot import WindowSnapshot


def make_update(window: int, offset: int = 1, windows: int = 1) -> WindowSnapshot:
    """Make an update of one row that was published 130 ms after its window."""
    published_us = (window + 130) * 1_000
    return WindowSnapshot(EPOCH, offset, window, windows, published_us, (make_row(),))


def test_lags_are_from_the_end_of_the_window() -> None:
    """Publishing is the throttle's part, the rest is ours."""
    timings = WindowTimings()
    timings.begin(make_update(2_000, windows=3), clients=7)
    [timing] = timings.newest(1)
    assert (timing.publish_lag_ms, timing.fanout_lag_ms) == (130, None)
    assert (timing.rows, timing.trades, timing.clients, timing.merged) == (1, 1, 7, 3)
    timings.finish(2_150)
    assert timing.fanout_lag_ms == 150
    timings.finish(9_999)
    assert timing.fanout_lag_ms == 150


def test_an_update_that_waits_does_not_hide_the_lag_of_the_one_before() -> None:
    """Two that are finished together both are."""
    timings = WindowTimings()
    timings.begin(make_update(2_000), 1)
    timings.finish(2_140)
    timings.begin(make_update(4_000), 1)
    timings.begin(make_update(6_000), 1)
    timings.finish(6_145)
    assert [timing.fanout_lag_ms for timing in timings.newest(9)] == [140, 2_145, 145]


def test_only_the_newest_are_kept_and_come_oldest_first() -> None:
    """Memory is bounded however long the gateway runs."""
    timings = WindowTimings()
    for offset in range(KEPT + 5):
        timings.begin(make_update(2_000, offset), 0)
    assert len(timings) == KEPT
    assert [timing.offset for timing in timings.newest(2)] == [KEPT + 3, KEPT + 4]
