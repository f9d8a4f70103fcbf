"""Overload begins late, ends later, and says what there was too much of."""

from gateway.health.overload import Overload

MB = 1 << 20


def create() -> Overload:
    """At most 100 MiB, at most 500 ms."""
    return Overload(100 * MB, 0.5)


def test_a_sample_beyond_a_threshold_is_not_overload_yet() -> None:
    """One long pause sends nobody away."""
    overload = create()
    overload.observe(0, 50 * MB, 3.0)
    overload.observe(1.9, 50 * MB, 3.0)
    assert overload.reason is None
    overload.observe(2.0, 50 * MB, 0.1)
    overload.observe(4.0, 50 * MB, 3.0)
    assert overload.reason is None


def test_two_seconds_beyond_a_threshold_are_overload() -> None:
    """It names the figure and the bound."""
    overload = create()
    overload.observe(0, 50 * MB, 0.6)
    overload.observe(2, 50 * MB, 0.7)
    assert overload.reason is not None
    assert "700 ms late, 500 ms is the most" in overload.reason


def test_memory_is_judged_as_the_lag_is() -> None:
    """Either is enough."""
    overload = create()
    overload.observe(0, 101 * MB, 0)
    overload.observe(2, 120 * MB, 0)
    assert overload.reason is not None
    assert "120 MiB of memory, 100 MiB is the most" in overload.reason


def test_overload_ends_well_below_the_threshold_only() -> None:
    """Or it would come and go with every client."""
    overload = create()
    for now_s in (0, 2, 4, 6):
        overload.observe(now_s, 101 * MB, 0)
    for now_s in (8, 12):
        overload.observe(now_s, 81 * MB, 0)
        assert overload.reason is not None
    overload.observe(13, 79 * MB, 0)
    assert overload.reason is not None
    overload.observe(15, 79 * MB, 0)
    assert overload.reason is None
