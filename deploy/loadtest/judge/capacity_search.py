"""How a search for the most load goes on, and what gave way first. Pure."""

from collections.abc import Sequence
from math import sqrt
from operator import itemgetter
from typing import Literal

from deploy.loadtest.results import Capacity, Step

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
    """Return the greatest load that held."""
    return max((step.load for step in steps if step.is_good), default=None)


def first_bad(steps: Sequence[Step]) -> float | None:
    """Return the least load that failed as often as it takes."""
    bad = {step.load for step in steps if not step.is_good}
    return min(
        (load for load in bad if _failures(steps, load) >= TRIES),
        default=None,
    )


def conclude(
    raised: Literal["rate", "clients"], steps: Sequence[Step], cores: int
) -> Capacity:
    """Return what the search has found. ``cores`` are the machine's."""
    bad = first_bad(steps)
    return Capacity(
        raised, tuple(steps), last_good(steps), bad, _gave_way(steps, bad, cores)
    )


def in_words(step: Step, raised: Literal["rate", "clients"]) -> str:
    """Return a step as a line for the terminal."""
    what = "trades/s" if raised == "rate" else "clients"
    found = "held" if step.is_good else f"broke: {', '.join(step.broken)}"
    p99 = "" if step.lag_p99_ms is None else f", lag p99 {step.lag_p99_ms:,.0f} ms"
    return f"{step.load:,.0f} {what}: {found}{p99}"


def _failures(steps: Sequence[Step], load: float) -> int:
    return sum(step.load == load and not step.is_good for step in steps)


def _round(load: float, grain: float) -> float:
    return max(grain, round(load / grain) * grain)


def _gave_way(steps: Sequence[Step], bad: float | None, cores: int) -> str:
    """Say which stage took the time that was too much, and who was busy then."""
    if bad is None:
        return ""
    failed = next(s for s in reversed(steps) if s.load == bad and not s.is_good)
    good = last_good(steps)
    held = next((s for s in reversed(steps) if s.is_good and s.load == good), None)
    words = [", ".join(failed.broken)]
    if any(rule.startswith("feed.behind") for rule in failed.broken):
        words.append("the load test's own feed could not keep its schedule")
    else:
        words += _slowest_stage(failed, held)
    if failed.busiest:
        words.append(f"busiest, in cores: {', '.join(failed.busiest)}")
    if failed.machine_cpu is not None:
        words.append(f"the machine used {failed.machine_cpu:.2f} of {cores} cores")
    return "; ".join(words)


def _slowest_stage(failed: Step, held: Step | None) -> list[str]:
    stages = (
        ("the throttle (window's end to publish)", "publish_p99_ms"),
        ("gateway and clients (publish to receipt)", "fanout_p99_ms"),
    )
    found = []
    for name, attribute in stages:
        now = getattr(failed, attribute)
        before = None if held is None else getattr(held, attribute)
        if now is not None:
            found.append((now, name, before))
    if not found:
        return []
    now, name, before = max(found, key=itemgetter(0))
    was = "" if before is None else f" against {before:,.0f} ms at the last good load"
    return [f"most of it {name}: {now:,.0f} ms at p99{was}"]
