"""What of a series lies within the measured time. Pure."""

from collections.abc import Sequence

from bench.load.results import Outcome, Points


def measured(
    outcome: Outcome, at_ms: Sequence[float], points: Points
) -> list[tuple[float, float]]:
    """Return known points with their times: clients joining are not measured."""
    return [
        (at, point)
        for at, point in zip(at_ms, points, strict=False)
        if point is not None and outcome.from_ms <= at <= outcome.to_ms
    ]


def mean(outcome: Outcome, at_ms: Sequence[float], points: Points) -> float | None:
    """Return the mean of a series over the measured time."""
    known = [point for _, point in measured(outcome, at_ms, points)]
    return sum(known) / len(known) if known else None
