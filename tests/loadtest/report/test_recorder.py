"""What was seen second by second: `loadtest/report/recorder.py`."""

from collections import Counter

from loadtest.feed.fed import Fed, add_up
from loadtest.judge.tallies import CrowdTick
from loadtest.report.recorder import Moment, Recorder
from loadtest.results import ClientTally

FED = Fed(2.5, acknowledged=8, behind_ms=3.0)


def moment(
    at_ms: float,
    seconds: float = 2.0,
    fed: Fed = FED,
    frames: int = 4,
) -> Moment:
    seen = ClientTally(frames=frames, items=6, bytes=100)
    return Moment(at_ms, seconds, fed, CrowdTick(Counter(watch=5), seen))


def test_rates_are_of_the_time_that_passed() -> None:
    """A moment of two seconds; the feed tells of its own clock."""
    recorder = Recorder(2_000)
    recorder.moments.append(moment(1_000))
    recorder.moments.append(moment(3_000, fed=Fed()))
    seconds = recorder.seconds(0, 5_000, [1.5, 1.5])
    assert list(seconds.at_ms) == [1_000, 3_000]
    assert list(seconds.append_rate) == [3.2, 0]
    assert list(seconds.behind_ms) == [3, 0]
    assert list(seconds.byte_rate) == [50, 50]
    assert list(seconds.clients) == [5, 5]
    assert list(seconds.machine_cpu) == [1.5, 1.5]


def test_only_what_was_measured_is_told() -> None:
    """The beginning is not within, the end is."""
    recorder = Recorder(2_000)
    for at_ms in (1_000, 2_000, 3_000, 4_000):
        recorder.moments.append(moment(at_ms))
    assert recorder.axis(1_000, 3_000) == [2_000, 3_000]


def test_parts_of_a_feed_add_up() -> None:
    parts = [Fed(1.0, 9, 2.0), Fed(), Fed(3.0, 31, 1.0)]
    assert add_up(parts) == Fed(4.0, 40, 2.0)
    assert add_up([]) == Fed()


def test_what_comes_by_the_window_is_told_of_a_window() -> None:
    """Clients get everything in every second second: half as much a second."""
    recorder = Recorder(2_000)
    for at_ms, frames in ((1_000, 0), (2_000, 100), (3_000, 0), (4_000, 100)):
        recorder.moments.append(moment(at_ms, seconds=1.0, frames=frames))
    seconds = recorder.seconds(1_000, 4_000, [None] * 3)
    assert list(seconds.frame_rate) == [50, 50, 50]
