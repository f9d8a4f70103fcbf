"""By its number a trade is new, or came before; and what never came is known."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import Numbering
from ingest.adapters.trade_numbers import (
    LEAST_REMEMBERED,
    OPEN_GAPS,
    REMEMBERED,
    Gap,
    TradeNumbers,
)


def test_without_numbers_everything_is_new() -> None:
    numbers = TradeNumbers(Numbering.NONE)
    assert numbers.is_new("A", 1)
    assert numbers.is_new("A", 1)
    assert TradeNumbers(Numbering.BY_ONE).is_new("A", None)


@given(st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 60)), max_size=80))
def test_a_unique_number_is_new_once(told: list[tuple[str, int]]) -> None:
    numbers = TradeNumbers(Numbering.UNIQUE)
    new = [item for item in told if numbers.is_new(*item)]

    assert new == list(dict.fromkeys(told))
    assert numbers.repeated == len(told) - len(new)


def test_numbers_of_another_series_are_others() -> None:
    numbers = TradeNumbers(Numbering.UNIQUE)
    assert numbers.is_new("A", 1, "D")
    assert numbers.is_new("A", 1, "V")
    assert not numbers.is_new("A", 1, "D")


def test_memory_of_unique_numbers_is_bounded() -> None:
    numbers = TradeNumbers(Numbering.UNIQUE)
    for number in range(REMEMBERED + 1):
        assert numbers.is_new("A", number)
    assert numbers.is_new("A", 0)
    assert not numbers.is_new("A", REMEMBERED)
    assert LEAST_REMEMBERED < REMEMBERED


@given(st.lists(st.integers(0, 40), max_size=60))
def test_numbers_by_one_are_new_once_in_any_order(told: list[int]) -> None:
    """As long as gaps are few enough to be remembered."""
    numbers = TradeNumbers(Numbering.BY_ONE)
    new = [number for number in told if numbers.is_new("A", number)]

    assert not {n for n, count in Counter(new).items() if count > 1}
    assert set(new) == set(told)
    assert numbers.repeated == len(told) - len(new)
    if told:
        never_came = set(range(told[0], max(told) + 1)) - set(told)
        assert numbers.missing >= len(never_came)


def test_a_gap_is_told_and_may_be_filled() -> None:
    numbers = TradeNumbers(Numbering.BY_ONE)
    for number in (1, 2, 6):
        assert numbers.is_new("A", number)
    assert numbers.last_gap == Gap("A", 3, 5)
    assert (numbers.gap_count, numbers.missing, numbers.late) == (1, 3, 0)

    assert numbers.is_new("A", 4)
    assert not numbers.is_new("A", 4)
    assert numbers.is_new("A", 3)
    assert numbers.is_new("A", 5)
    assert (numbers.missing, numbers.late, numbers.repeated) == (3, 3, 1)


def test_gaps_of_a_symbol_are_bounded() -> None:
    numbers = TradeNumbers(Numbering.BY_ONE)
    for number in range(0, 2 * (OPEN_GAPS + 2), 2):
        assert numbers.is_new("A", number)
    # The oldest gap is forgotten: what falls into it counts as missing for good.
    assert not numbers.is_new("A", 1)
    assert numbers.is_new("A", 2 * OPEN_GAPS + 1)


def test_a_volume_that_does_not_grow_came_before() -> None:
    numbers = TradeNumbers(Numbering.CUMULATIVE)
    assert numbers.is_new("A", 100, "d/1", 100)
    assert numbers.is_new("A", 102, "d/1", 2)
    assert not numbers.is_new("A", 102, "d/1", 2)
    assert not numbers.is_new("A", 100, "d/1", 100)
    assert (numbers.repeated, numbers.gap_count) == (2, 0)

    assert numbers.is_new("A", 150, "d/1", 8)
    assert numbers.last_gap == Gap("A", 102, 142)
    # Another day, or board: the volume begins anew.
    assert numbers.is_new("A", 5, "e/1", 5)


@pytest.mark.parametrize("numbering", list(Numbering))
def test_symbols_have_numbers_of_their_own(numbering: Numbering) -> None:
    numbers = TradeNumbers(numbering)
    assert numbers.is_new("A", 7)
    assert numbers.is_new("B", 7)
