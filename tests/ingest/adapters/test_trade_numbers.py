"""By its number a trade is new, or came before; and what never came is known."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from ingest.adapters.adapter import Numbering
from ingest.adapters.trade_numbers import (
    LEAST_REMEMBERED,
    LINES,
    MOST_MISSING,
    OPEN_GAPS,
    REMEMBERED,
    NumberStep,
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


def remembering(numbering: Numbering, room: int) -> TradeNumbers:
    """Return numbers with room for so many trades of a symbol."""
    return TradeNumbers(numbering, REMEMBERED // room)


def times_new(numbers: TradeNumbers, trades: range) -> int:
    """Return how many of these trades, a microsecond apart, are new."""
    return sum(numbers.is_new("A", n, time_us=n) for n in trades)


def test_memory_of_unique_numbers_is_bounded() -> None:
    numbers = TradeNumbers(Numbering.UNIQUE, 10 * REMEMBERED)
    for number in range(LEAST_REMEMBERED + 1):
        assert numbers.is_new("A", number, time_us=number)
    assert numbers.unremembered == 0
    assert numbers.is_new("A", 0, time_us=0)
    assert numbers.unremembered == 1
    assert not numbers.is_new("A", LEAST_REMEMBERED, time_us=LEAST_REMEMBERED)


def test_trades_played_again_and_again_are_known() -> None:
    """However often, and more of them than fit: those that do not fit push none out."""
    numbers = TradeNumbers(Numbering.UNIQUE)
    assert [times_new(numbers, range(304)) for _ in range(4)] == [304, 0, 0, 0]

    numbers = remembering(Numbering.UNIQUE, 256)
    assert [times_new(numbers, range(304)) for _ in range(4)] == [304, 48, 48, 48]
    assert numbers.unremembered == 3 * 48
    # What is newer is remembered as before.
    assert times_new(numbers, range(304, 400)) == 96
    assert times_new(numbers, range(304, 400)) == 0


def test_a_stamp_of_next_year_makes_no_later_trade_too_old() -> None:
    numbers = remembering(Numbering.UNIQUE, 16)
    numbers.is_new("A", 999, time_us=10**9, now_us=1)
    for number in range(2, 40):
        assert numbers.is_new("A", number, time_us=number, now_us=number)
        assert not numbers.is_new("A", number, time_us=number, now_us=number)


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
    assert numbers.last_gap == NumberStep("A", 3, 5)
    assert (numbers.gap_count, numbers.missing, numbers.late) == (1, 3, 0)

    assert numbers.is_new("A", 4)
    assert not numbers.is_new("A", 4)
    assert numbers.is_new("A", 3)
    assert numbers.is_new("A", 5)
    assert (numbers.missing, numbers.late, numbers.repeated) == (3, 3, 1)


def test_series_that_alternate_have_gaps_of_their_own() -> None:
    """Two boards of one instrument: what comes again is known, what is missing too."""
    numbers = TradeNumbers(Numbering.BY_ONE)
    for number in (1, 2, 5):
        assert numbers.is_new("A", number, "D")
        assert numbers.is_new("A", number + 100, "V")
    assert (numbers.gap_count, numbers.missing) == (2, 4)
    assert not numbers.is_new("A", 2, "D")
    assert numbers.is_new("A", 3, "D")
    assert (numbers.late, numbers.repeated, numbers.jumps) == (1, 1, 0)


def test_series_of_a_symbol_are_bounded() -> None:
    """A feed that runs for months keeps no line for each day."""
    numbers = TradeNumbers(Numbering.BY_ONE)
    for day in range(LINES + 1):
        assert numbers.is_new("A", 7, f"{day}")
    assert not numbers.is_new("A", 7, "1")
    assert numbers.is_new("A", 7, "0")


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
    assert numbers.last_gap == NumberStep("A", 102, 142)
    # Another day, or board: the volume begins anew.
    assert numbers.is_new("A", 5, "e/1", 5)


def volume(numbers: TradeNumbers, number: int, series: str = "d/2") -> bool:
    """Tell whether a trade of 10 that makes the day's volume is new."""
    return numbers.is_new("A", number, series, 10, number, "71900")


def test_a_volume_that_jumps_silences_nothing() -> None:
    """One frame of nine hundred quadrillion; all that come later are taken."""
    numbers = TradeNumbers(Numbering.CUMULATIVE)
    assert [volume(numbers, n) for n in (1000, 9 * 10**17, 1010, 1020)] == [True] * 4
    assert not volume(numbers, 1010)
    assert (numbers.gap_count, numbers.jumps) == (1, 1)
    assert numbers.last_jump == NumberStep("A", 9 * 10**17, 1010)


def test_a_volume_that_goes_back_is_told_and_its_trades_are_new() -> None:
    """A trade was taken back at the exchange, perhaps; its volume with it."""
    numbers = TradeNumbers(Numbering.CUMULATIVE)
    assert [volume(numbers, n) for n in (1000, 1010, 990, 1000)] == [True] * 3 + [False]
    # The same volume at another price or time is another trade.
    assert numbers.is_new("A", 1010, "d/2", 10, 1010, "72000")
    assert numbers.last_jump == NumberStep("A", 1010, 990)
    assert numbers.repeated == 1


def test_trades_are_known_whatever_the_board_says() -> None:
    """The digit of the session goes to and fro."""
    numbers = TradeNumbers(Numbering.CUMULATIVE)
    trades = [(1000, "d/2"), (1010, "d/1"), (1020, "d/2")]
    assert [volume(numbers, *trade) for trade in trades] == [True] * 3
    assert [volume(numbers, *trade) for trade in reversed(trades)] == [False] * 3
    assert numbers.gap_count == numbers.jumps == 0


def test_a_volume_older_than_the_memory_came_before() -> None:
    numbers = remembering(Numbering.CUMULATIVE, 16)
    volumes = range(10, 1000, 10)
    assert all(volume(numbers, n) for n in volumes)
    assert not any(volume(numbers, n) for n in volumes)
    assert numbers.unremembered == 0


def test_a_number_far_off_is_put_aside() -> None:
    """It is no gap of 2^62 trades; and its own successor begins the line anew."""
    for far in (
        2**62,
        -(2**40),
    ):
        numbers = TradeNumbers(Numbering.BY_ONE)
        first = 2**41
        assert numbers.is_new("A", first)
        assert numbers.is_new("A", first + far)
        assert not numbers.is_new("A", first + far)
        assert numbers.is_new("A", first + 1)
        assert not numbers.is_new("A", first + 1)
        assert (numbers.missing, numbers.late, numbers.jumps) == (0, 0, 1)
        assert numbers.last_jump == NumberStep("A", first, first + far)

        assert numbers.is_new("A", first + far + 1)
        assert numbers.is_new("A", first + far + 4)
        assert numbers.last_gap == NumberStep("A", first + far + 2, first + far + 3)
        assert MOST_MISSING < 2**40


def test_numbers_that_begin_anew_silence_nothing() -> None:
    """Minutes later, at 1 again: none of them came before."""
    numbers = TradeNumbers(Numbering.BY_ONE)
    minute_us = 60_000_000
    before = [numbers.is_new("A", n, time_us=minute_us + n) for n in range(1, 50)]
    assert not numbers.is_new("A", 7, time_us=minute_us + 7)
    later = [numbers.is_new("A", n, time_us=3 * minute_us + n) for n in range(1, 60)]
    assert all(before + later)
    assert (numbers.repeated, numbers.late, numbers.jumps) == (1, 0, 1)
    assert numbers.last_jump == NumberStep("A", 49, 1)


def test_symbols_have_numbers_of_their_own() -> None:
    for numbering in list(Numbering):
        numbers = TradeNumbers(numbering)
        assert numbers.is_new("A", 7)
        assert numbers.is_new("B", 7)
