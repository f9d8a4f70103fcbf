"""Distributions, told by nearest rank: every percentile is a value that occurred."""

from collections.abc import Iterable, Sequence

from loadtest.results import Summary


def summarize(values: Iterable[float]) -> Summary:
    """Return the distribution of ``values``, in whatever order they come."""
    ordered = sorted(values)
    if not ordered:
        return Summary(0)
    return Summary(
        count=len(ordered),
        # A mean is never outside of what it is the mean of, whatever sums round to.
        mean=min(max(sum(ordered) / len(ordered), ordered[0]), ordered[-1]),
        p50=nearest_rank(ordered, 500),
        p90=nearest_rank(ordered, 900),
        p99=nearest_rank(ordered, 990),
        p999=nearest_rank(ordered, 999),
        max=ordered[-1],
    )


def nearest_rank(ordered: Sequence[float], per_mille: int) -> float:
    """Return the least value that ``per_mille`` of 1,000 values do not exceed.

    ``ordered`` ascends and is not empty. With few values a high percentile is the
    greatest of them: nothing is interpolated, nothing better than what was seen.
    """
    rank = -(-per_mille * len(ordered) // 1_000)
    return ordered[max(rank, 1) - 1]


def mean_of(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values there are, None of none."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured else None
