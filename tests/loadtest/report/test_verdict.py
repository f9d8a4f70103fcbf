"""Did it hold? The answer in words."""

from dataclasses import replace

from loadtest.report.verdict import broken_words, detail, headline, in_short
from loadtest.results import Capacity, Summary
from tests.loadtest.samples import (
    make_broken_result,
    make_capacity_result,
    make_outcome,
    make_result,
)


def test_a_run_that_passed_held() -> None:
    """The headline answers, the detail says under which load."""
    result = make_result(40, 20)
    assert headline(result) == "It held"
    assert detail(result).startswith("22 clients, ")
    assert "of their window's end, 99 of 100 within " in detail(result)


def test_a_run_that_failed_says_how_many_thresholds_broke() -> None:
    result = make_broken_result()
    assert headline(result) == "It did not hold: 6 of 9 thresholds broke"
    broken = broken_words(result.outcome.checks)
    assert "cpu.nobody.max>90%: nothing measured" in broken
    assert len(broken) == 6


def test_a_failure_without_a_broken_threshold_is_one() -> None:
    """Whether it passed is the run's to say."""
    failed = replace(make_result(40, 20), is_passed=False)
    assert headline(failed) == "It did not hold"


def test_without_lag_nothing_is_said_of_it() -> None:
    """A feed without clients is told by its trades."""
    outcome = replace(make_outcome(40, 20), lag_ms=Summary(0), kinds=())
    assert in_short(outcome) == "36,000 trades in 40.0 s."


def test_a_search_is_told_by_its_limit() -> None:
    """Up to where it held, where it did not, and what gave way."""
    result = make_capacity_result()
    assert headline(result) == (
        "It held up to 50,000 trades a second, and no longer at 65,000"
    )
    assert detail(result).startswith("What gave way first: lag.p99>2s: ")
    assert "throttle JVM" in detail(result)
    throughout = replace(result, capacity=Capacity("clients", (), 2_000, None))
    assert headline(throughout) == "It held throughout, up to 2,000 clients"
    assert detail(throughout) == "Nothing gave way."
    nowhere = replace(result, capacity=Capacity("clients", (), None, 100))
    assert headline(nowhere) == "It held at no number of clients that was tried"
