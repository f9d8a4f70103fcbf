"""Did it hold? The answer in words."""

from dataclasses import replace

from loadtest.report.verdict import broken_words, in_short, judge
from loadtest.results import Capacity, Summary
from tests.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_outcome,
    make_result,
)


def test_a_run_that_passed_held() -> None:
    """The headline answers, the detail says under which load."""
    found = judge(make_result(40, 20))
    assert (found.is_good, found.headline) == (True, "It held")
    assert found.detail.startswith("22 clients, ")
    assert "of their window's end, 99 of 100 within " in found.detail


def test_a_run_that_failed_says_how_many_thresholds_broke() -> None:
    """What broke comes first, each with what was found."""
    found = judge(make_broken_result())
    broken = [check for check in found.checks if check.is_broken]
    assert found.headline == "It did not hold: 6 of 9 thresholds broke"
    assert list(found.checks[: len(broken)]) == broken
    assert "cpu.nobody.max>90%: nothing measured" in broken_words(found.checks)
    assert len(broken_words(found.checks)) == len(broken)


def test_a_failure_without_a_broken_threshold_is_one() -> None:
    """Whether it passed is the run's to say."""
    assert judge(replace(make_result(40, 20), is_passed=False)).headline == (
        "It did not hold"
    )


def test_without_lag_nothing_is_said_of_it() -> None:
    """A feed without clients is told by its trades."""
    outcome = replace(make_outcome(40, 20), lag_ms=Summary(0), kinds=())
    assert in_short(outcome) == "35,980 trades in 40.0 s."


def test_a_search_is_told_by_its_limit() -> None:
    """Up to where it held, where it did not, and what gave way."""
    result = make_capacity_result()
    found = judge(result)
    assert found.headline == (
        "It held up to 50,000 trades a second, and no longer at 65,000"
    )
    assert found.detail.startswith("What gave way first: lag.p99>2s: ")
    assert "throttle JVM" in found.detail
    throughout = Capacity("clients", (), 2_000, None)
    found = judge(replace(result, capacity=throughout))
    assert found.headline == "It held throughout, up to 2,000 clients"
    assert found.detail == "Nothing gave way."
    nowhere = Capacity("clients", (), None, 100)
    found = judge(replace(result, capacity=nowhere))
    assert found.headline == "It held at no number of clients that was tried"
