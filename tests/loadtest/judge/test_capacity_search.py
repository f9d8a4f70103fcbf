"""The search for the most load: `judge/capacity_search.py`."""

from collections.abc import Callable
from dataclasses import replace

from loadtest.judge.capacity_search import conclude, next_load
from loadtest.results import Check, Step
from tests.loadtest.samples import make_outcome

OUTCOME = make_outcome(10, 10)


def step(load: float, *, is_good: bool) -> Step:
    check = Check("lag.p99>1s", 1_200, "1.2 s", is_broken=not is_good)
    return Step(load, replace(OUTCOME, checks=[check]))


def search(
    holds: Callable[[float], bool], start: float = 100, most: float = 100_000
) -> list[Step]:
    """Search where a load holds if ``holds`` says so."""
    steps: list[Step] = []
    while (load := next_load(steps, start, most, grain=10)) is not None:
        steps.append(step(load, is_good=holds(load)))
        assert len(steps) < 40
    return steps


def test_it_closes_in_on_the_limit() -> None:
    """The last good load is within a sixth of the truth."""
    for limit in (15, 100, 101, 999, 5_000, 77_777):
        capacity = conclude("rate", search(lambda load, most=limit: load <= most))
        assert capacity.last_good is not None
        assert capacity.first_bad is not None
        assert capacity.last_good <= limit < capacity.first_bad
        is_close = capacity.first_bad <= capacity.last_good * 1.16
        assert is_close or capacity.last_good == 10


def test_it_ends_at_the_most() -> None:
    """What holds at the most load has no limit that could be named."""
    found = conclude("clients", search(lambda _: True, most=3_000))
    assert found.last_good == 3_000
    assert found.first_bad is None


def test_it_ends_where_nothing_holds() -> None:
    found = conclude("rate", search(lambda _: False))
    assert found.last_good is None
    assert found.first_bad == 10


def test_one_hiccup_is_no_limit() -> None:
    """A load that failed is tried again; only two failures make it bad."""
    steps = [step(100, is_good=True), step(200, is_good=False)]
    assert next_load(steps, 100, 1_000) == 200
    steps.append(step(200, is_good=True))
    assert next_load(steps, 100, 1_000) == 400
