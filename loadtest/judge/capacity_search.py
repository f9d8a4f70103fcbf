"""How a search for the most load goes on, and what gave way first. Pure."""

from collections.abc import Sequence
from math import sqrt
from typing import Literal

from loadtest.results import Capacity, Step

CLOSE_ENOUGH = 1.15
"""The search ends when the first bad load is so many times the last good one."""

TRIES = 2
"""A load is bad when it failed so often: one hiccup of a machine is no limit."""


def next_load(
    steps: Sequence[Step], start: float, most: float, *, grain: float = 1
) -> float | None:
    """Return what to try after ``steps``, None when the search is over.

    Doubles from ``start`` until a load is bad or ``most`` is good, then halves the
    ratio between the last good and the first bad one. Loads are multiples of
    ``grain``. A load below ``start`` is tried only if ``start`` itself is bad.
    """
    if not steps:
        return min(start, most)
    last = steps[-1]
    if not last.is_good and _failures(steps, last.load) < TRIES:
        return last.load
    good, bad = last_good(steps), first_bad(steps)
    if bad is None:
        assert good is not None
        return None if good >= most else min(2 * good, most)
    if good is None:
        following = _round(bad / 2, grain)
        return following if bad > grain and following < bad else None
    following = _round(sqrt(good * bad), grain)
    is_close = bad <= good * CLOSE_ENOUGH or not good < following < bad
    return None if is_close else following


def last_good(steps: Sequence[Step]) -> float | None:
    return max((step.load for step in steps if step.is_good), default=None)


def first_bad(steps: Sequence[Step]) -> float | None:
    """Return the least load that failed as often as it takes."""
    bad = {step.load for step in steps if not step.is_good}
    return min(
        (load for load in bad if _failures(steps, load) >= TRIES),
        default=None,
    )


def conclude(raised: Literal["rate", "clients"], steps: Sequence[Step]) -> Capacity:
    return Capacity(raised, tuple(steps), last_good(steps), first_bad(steps))


def _failures(steps: Sequence[Step], load: float) -> int:
    return sum(step.load == load and not step.is_good for step in steps)


def _round(load: float, grain: float) -> float:
    return max(grain, round(load / grain) * grain)
