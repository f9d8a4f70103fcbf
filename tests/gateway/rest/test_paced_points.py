"""One point of an instrument's history in an interval."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.rest.paced_points import paced_points, whole_from, whole_until
from gateway.upstream.instrument_history import Point

WINDOWS = st.lists(
    st.integers(1, 60).map(lambda number: number * 2_000), unique=True
).map(lambda windows: sorted(windows, reverse=True))
INTERVALS = st.sampled_from([4_000, 6_000, 20_000])
OVER_MS = 1_000_000
"""All windows are here."""


def make_point(window: int) -> Point:
    """Return the point of a window, of one trade."""
    return Point(window, str(window), "1", 1, window * 1_000)


@given(WINDOWS, INTERVALS)
def test_each_interval_has_its_newest_point(windows: list[int], every: int) -> None:
    """It stands for the trades of all."""
    points = list(paced_points(map(make_point, windows), every, OVER_MS))
    newest: dict[int, int] = {}
    for window in windows:
        newest.setdefault(-(-window // every), window)
    assert [point.window for point in points] == list(newest.values())
    assert sum(point.trades for point in points) == len(windows)


@given(WINDOWS, INTERVALS, st.integers(0, 130_000))
def test_an_interval_is_told_once_all_its_windows_are_here(
    windows: list[int], every: int, upto_ms: int
) -> None:
    """Whatever comes then, its price stays."""
    here = [make_point(window) for window in windows if window <= upto_ms]
    later = paced_points(map(make_point, windows), every, OVER_MS)
    over_ms = upto_ms // every * every
    points = list(paced_points(here, every, upto_ms))
    assert points == [point for point in later if point.window <= over_ms]


@given(WINDOWS)
def test_without_an_interval_each_point_is_told(windows: list[int]) -> None:
    """As it is."""
    points = list(map(make_point, windows))
    assert list(paced_points(points, 0, 0)) == points


@given(WINDOWS, INTERVALS, st.integers(0, 130_000), st.integers(0, 130_000))
def test_no_bounds_tell_of_another_point(
    windows: list[int], every: int, from_ms: int, to_ms: int
) -> None:
    """Whatever is asked for, an interval has one price."""
    first, last = whole_from(from_ms, every), whole_until(to_ms, every)
    assert first is not None
    assert last is not None
    within = [make_point(w) for w in windows if first <= w <= last]
    all_told = {
        p.window for p in paced_points(map(make_point, windows), every, OVER_MS)
    }
    assert {p.window for p in paced_points(within, every, OVER_MS)} <= all_told


def test_bounds_stay_as_they_are_without_an_interval() -> None:
    """Or without bounds."""
    assert (whole_from(7, 0), whole_until(7, 0)) == (7, 7)
    assert (whole_from(None, 4_000), whole_until(None, 4_000)) == (None, None)
