"""The newest windows: how late each was published and handed out."""

from gateway.pulse import KEPT, Pulse
from tests.gateway.samples import EPOCH, make_row
from throttle.snapshot import WindowSnapshot


def make_update(window: int, offset: int = 1, windows: int = 1) -> WindowSnapshot:
    """Make an update of one row that was published 130 ms after its window."""
    published_us = (window + 130) * 1_000
    return WindowSnapshot(EPOCH, offset, window, windows, published_us, (make_row(),))


def test_lags_are_from_the_end_of_the_window() -> None:
    """Publishing is the throttle's part, the rest is ours."""
    pulse = Pulse()
    assert (pulse.last, pulse.fanout_lag_ms) == (None, None)
    pulse.begin(make_update(2_000, windows=3), clients=7)
    beat = pulse.last
    assert beat is not None
    assert (beat.publish_lag_ms, beat.fanout_lag_ms) == (130, None)
    assert (beat.rows, beat.trades, beat.clients, beat.merged) == (1, 1, 7, 3)
    pulse.finish(2_150)
    assert beat.fanout_lag_ms == pulse.fanout_lag_ms == 150
    pulse.finish(9_999)
    assert beat.fanout_lag_ms == 150


def test_an_update_that_waits_does_not_hide_the_lag_of_the_one_before() -> None:
    """Two that are finished together both are."""
    pulse = Pulse()
    pulse.begin(make_update(2_000), 1)
    pulse.finish(2_140)
    pulse.begin(make_update(4_000), 1)
    assert pulse.fanout_lag_ms == 140
    pulse.begin(make_update(6_000), 1)
    pulse.finish(6_145)
    assert [beat.fanout_lag_ms for beat in pulse.newest(9)] == [140, 2_145, 145]


def test_only_the_newest_are_kept_and_come_oldest_first() -> None:
    """Memory is bounded however long the gateway runs."""
    pulse = Pulse()
    for offset in range(KEPT + 5):
        pulse.begin(make_update(2_000, offset), 0)
    assert len(pulse) == KEPT
    assert [beat.offset for beat in pulse.newest(2)] == [KEPT + 3, KEPT + 4]
