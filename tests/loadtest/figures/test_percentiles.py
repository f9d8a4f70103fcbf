"""Distributions by nearest rank."""

import math
import random

from loadtest.figures.percentiles import nearest_rank, summarize
from loadtest.results import Summary


def test_of_nothing_nothing_is_known() -> None:
    """No value is no distribution, not one of zeros."""
    assert summarize([]) == Summary(0)


def test_percentiles_of_a_thousand() -> None:
    """Of 1 to 1,000 the p99 is the 990th, whatever the order."""
    values = [float(value) for value in range(1, 1_001)]
    random.Random(1).shuffle(values)
    assert summarize(values) == Summary(1_000, 500.5, 500, 900, 990, 999, 1_000)


def test_a_percentile_is_the_least_value_that_enough_do_not_exceed() -> None:
    """The definition, counted out: one rank lower would not be enough."""
    for count in (1, 2, 3, 10, 99, 100, 101, 999):
        for per_mille in (500, 900, 990, 999, 1_000):
            rank = nearest_rank(range(count), per_mille)
            assert sum(n <= rank for n in range(count)) * 1_000 >= per_mille * count
            assert sum(n < rank for n in range(count)) * 1_000 < per_mille * count


def test_a_mean_lies_among_its_values() -> None:
    """Equal values have that value as their mean, however they add up."""
    assert summarize([0.1] * 10).mean == 0.1
    assert math.isclose(summarize([1, 2, 4]).mean or 0, 7 / 3)
