"""Fewer points for a plot without hiding what stood out. Pure."""

from collections.abc import Callable, Sequence

from bench.load.results import Points

MOST = 1_500
"""Points of a plot: about as many as it has pixels."""


def step(points: int, most: int = MOST) -> int:
    """Return how many points become one, so that at most ``most`` are left."""
    return max(1, -(-points // most))


def thin(points: Points, by: int, keep: Callable[[list[float]], float] = max) -> Points:
    """Return one point for each ``by``: the greatest, or what ``keep`` chooses.

    A stretch without any measured point stays a gap.
    """
    found: list[float | None] = []
    for start in range(0, len(points), by):
        known = [point for point in points[start : start + by] if point is not None]
        found.append(keep(known) if known else None)
    return found


def thin_axis(axis: Sequence[float], by: int) -> list[float]:
    """Return the beginning of every stretch."""
    return list(axis[::by])
