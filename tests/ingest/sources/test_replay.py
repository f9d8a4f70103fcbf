"""A tape as a schedule: pace, stamps, passes, gaps, order."""

import gzip
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.sources import replay as replay_module
from ingest.sources.event import Event, Refusals
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import Replay, ReplayOptions
from ingest.sources.tape import TapeError
from ingest.trade import Trade
from tests.conftest import input_file
from tests.examples import many

RECORDED_US = 1_448_539_200_000_000
START_US = 1_773_964_800_000_000
ISIN = "KR7005930003"


def make_tape(path: Path, times_us: Sequence[int]) -> Path:
    """Write a tape of one instrument with the given times after RECORDED_US."""
    lines = [
        Trade(ISIN, RECORDED_US + time_us, seq, "0.30", "3", {"venue": "X"}).to_wire()
        for seq, time_us in enumerate(times_us)
    ]
    path.write_bytes(b"\n".join(lines))
    return path


def play(path: Path, times_us: Sequence[int], **options: Any) -> list[Event]:
    """The events of a tape with the given times."""
    tape = make_tape(path, times_us)
    return list(Replay([tape], ReplayOptions(**options)).events(START_US, Refusals()))


def dues(events: Sequence[Event]) -> list[int]:
    """When the events are due."""
    return [event.due_us for event in events]


def stamps(events: Sequence[Event], start_us: int = START_US) -> list[int]:
    """The events' exchange times, counted from a start."""
    return [Trade.from_wire(event.payload).time_us - start_us for event in events]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the tape is."""
    return tmp_path / "tape.jsonl"


def test_tape_keeps_its_own_pace(path: Path) -> None:
    """At speed 1 a trade is due, and stamped, as long after the start as recorded."""
    events = play(path, [0, 10, 10, 2_000_000])
    assert dues(events) == stamps(events) == [0, 10, 10, 2_000_000]


def test_only_the_time_is_new(path: Path) -> None:
    """A re-stamped trade keeps instrument, seq, price text, size and further fields."""
    (event,) = play(path, [0])
    assert event.key == ISIN
    assert Trade.from_wire(event.payload) == Trade(
        ISIN, START_US, 0, "0.30", "3", {"venue": "X"}
    )


@pytest.mark.parametrize(
    ("speed", "expected"),
    [(10.0, [0, 100, 100, 300_000]), (0.5, [0, 2_000, 2_000, 6_000_000])],
)
def test_speed_shortens_and_stretches(
    path: Path, speed: float, expected: list[int]
) -> None:
    """Distances are divided by the speed, for due times and stamps alike."""
    events = play(path, [0, 1_000, 1_000, 3_000_000], speed=speed)
    assert dues(events) == stamps(events) == expected


def test_due_time_never_goes_back_but_a_stamp_may(path: Path) -> None:
    """A trade recorded late is due at once and keeps its older stamp."""
    events = play(path, [0, 500, 200, -100, 600])
    assert dues(events) == [0, 500, 500, 500, 600]
    assert stamps(events) == [0, 500, 200, -100, 600]


def test_recorded_stamps_stay(path: Path) -> None:
    """With recorded stamps the pace is the tape's and the times are as they were."""
    events = play(path, [0, 500, 200], speed=10.0, stamp="recorded")
    assert dues(events) == [0, 50, 50]
    assert stamps(events, RECORDED_US) == [0, 500, 200]


def test_fixed_rate_ignores_the_tape_s_times(path: Path) -> None:
    """At a rate the trades are evenly spaced, and the due time is the stamp."""
    events = play(path, [0, 0, 9_000_000, 5], rate=1_000.0, loop=2)
    assert dues(events) == stamps(events) == [n * 1_000 for n in range(8)]


def test_stamps_go_on_rising_from_pass_to_pass(path: Path) -> None:
    """The next pass lies wholly behind the one before, late trades included."""
    events = play(path, [0, 500, -100, 400], loop=3)
    passes = [stamps(events[at : at + 4]) for at in (0, 4, 8)]
    assert passes[0] == [0, 500, -100, 400]
    assert all(max(a) < min(b) for a, b in pairwise(passes))
    assert passes[1] == [1_000_000, 1_000_500, 999_900, 1_000_400]
    assert dues(events) == sorted(dues(events))


def test_bad_lines_are_counted_on_every_pass(path: Path) -> None:
    """What was read and not played is in the tally as often as it was read."""
    tape = make_tape(path, [0, 5])
    tape.write_bytes(tape.read_bytes() + b"\nnonsense\n")
    refusals = Refusals()
    assert (
        len(list(Replay([tape], ReplayOptions(loop=2)).events(START_US, refusals))) == 4
    )
    assert refusals.counts == {"not_json": 2}


def test_long_gaps_are_shortened(path: Path) -> None:
    """Every silence over the limit lasts as long as the limit, shorter ones stay."""
    events = play(path, [0, 400_000, 9_400_000, 9_500_000, 99_000_000], max_gap_s=1.0)
    expected = [0, 400_000, 1_400_000, 1_500_000, 2_500_000]
    assert dues(events) == stamps(events) == expected


def test_limit_of_gaps_is_in_the_tape_s_seconds(path: Path) -> None:
    """Speed applies to the shortened gap as to everything else."""
    events = play(path, [0, 60_000_000], max_gap_s=1.0, speed=10.0)
    assert dues(events) == [0, 100_000]


def test_late_trade_after_a_shortened_gap_keeps_its_place(path: Path) -> None:
    """A stamp from before or within the gap lands before or within what is left."""
    times = [0, 100, 9_000_000, 50, 100, 200, 5_000_000, 8_600_000]
    events = play(path, times, max_gap_s=1.0, order="recorded")
    assert stamps(events) == [0, 100, 1_000_100, 50, 100, 100, 100, 600_100]


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=many(50)
)
@given(
    st.lists(st.integers(0, 20_000_000), min_size=1, max_size=30).map(sorted),
    st.sampled_from([0.5, 1.0, 3.0, 1_000.0]),
    st.sampled_from([None, 0.5, 3.0]),
    st.lists(st.integers(-400_000, 0), min_size=30, max_size=30),
)
def test_restamped_trades_keep_their_order(
    path: Path,
    times: list[int],
    speed: float,
    max_gap_s: float | None,
    delays: list[int],
) -> None:
    """No trade overtakes another, equal stamps stay equal, due times never go back."""
    late = [time + delay for time, delay in zip(times, delays, strict=False)]
    events = play(path, late, speed=speed, max_gap_s=max_gap_s)
    assert dues(events) == sorted(dues(events))
    by_time = sorted(zip(late, stamps(events), strict=True))
    for (one, one_stamp), (other, other_stamp) in pairwise(by_time):
        assert one_stamp <= other_stamp
        assert one_stamp == other_stamp or one != other


def test_error_of_the_tape_is_the_replay_s(tmp_path: Path) -> None:
    """A tape that cannot be read ends the schedule with its error, even for ever."""
    tape, options = tmp_path / "none", ReplayOptions(loop=0)
    with pytest.raises(TapeError, match="cannot be read"):
        next(Replay([tape], options).events(START_US, Refusals()))


@pytest.mark.parametrize("options", [{"speed": 2.0}, {"max_gap_s": 1.0}])
def test_rate_excludes_the_tape_s_pace(options: dict[str, Any]) -> None:
    """A fixed rate together with what changes the tape's pace is a mistake."""
    with pytest.raises(ValueError, match="fixed rate"):
        ReplayOptions(rate=10.0, **options)


def test_a_profile_is_in_place_of_the_tape_s_pace(path: Path) -> None:
    """Order and content stay; due times and stamps are the profile's, to its end."""
    profile = Profile.parse("100:50ms,200:1s")
    events = play(path, [0, 500, 500, 9_000_000], profile=profile, loop=0)
    assert len(events) == 205
    assert dues(events) == stamps(events) == list(profile.dues_us())
    seqs = [Trade.from_wire(event.payload).seq for event in events]
    assert seqs[:8] == [0, 1, 2, 3, 0, 1, 2, 3]
    assert len(play(path, [0, 500], profile=profile)) == 2


def test_several_tapes_are_played_at_the_same_time(tmp_path: Path) -> None:
    """Each begins with the replay and has its own passes; due times never go back."""
    first = make_tape(tmp_path / "a", [0, 1_000])
    second = make_tape(tmp_path / "b", [5_000_000, 5_000_500, 5_004_000])
    options = ReplayOptions(loop=2)
    events = list(Replay([first, second], options).events(START_US, Refusals()))
    one_pass = [0, 0, 500, 1_000, 4_000]
    expected = [*one_pass, *(1_000_000 + due_us for due_us in one_pass)]
    assert dues(events) == stamps(events) == expected
    assert all(one.due_us <= other.due_us for one, other in pairwise(events))


def test_several_tapes_are_merged_before_they_are_paced(tmp_path: Path) -> None:
    """At a fixed rate trades come in the order of their tapes' times."""
    first = make_tape(tmp_path / "a", [0, 2_000])
    second = make_tape(tmp_path / "b", [0, 1_000, 3_000])
    options = ReplayOptions(rate=10.0)
    events = list(Replay([first, second], options).events(START_US, Refusals()))
    seqs = [Trade.from_wire(event.payload).seq for event in events]
    assert seqs == [0, 0, 1, 1, 2]
    assert dues(events) == [0, 100_000, 200_000, 300_000, 400_000]


def told(tape: Path, **options: Any) -> tuple[list[Event], list[str]]:
    """The events of a tape, and what is said of it."""
    said: list[str] = []
    events = Replay([tape], ReplayOptions(**options), tell=said.append).events(
        START_US, Refusals()
    )
    return list(events), said


def test_a_tape_sorted_by_instrument_is_told_and_sorted() -> None:
    events, said = told(input_file("b/b40_sorted_by_symbol.csv"))
    assert stamps(events) == [n * 500_000 for n in range(7) for _ in range(3)]
    assert [event.key for event in events[:3]] == [
        "KR7005930003",
        "KR7000660001",
        "KR7035420009",
    ]
    assert len(said) == 1
    assert "trade 8 (KR7000660001) is 3 seconds older than one before it" in said[0]
    assert said[0].endswith("it is sorted")


def test_a_tape_with_the_newest_first_is_sorted_in_every_pass(path: Path) -> None:
    tape = make_tape(path, [5_000_000, 4_000_000, 3_000_000, 2_000_000, 500_000, 0])
    tape.write_bytes(tape.read_bytes() + b"\nnonsense\n")
    refusals = Refusals()
    options = ReplayOptions(loop=2)
    events = list(Replay([tape], options).events(START_US, refusals))
    one_pass = [0, 500_000, 2_000_000, 3_000_000, 4_000_000, 5_000_000]
    assert dues(events) == stamps(events)
    assert dues(events) == [*one_pass, *(5_001_000 + due_us for due_us in one_pass)]
    assert refusals.counts == {"not_json": 2}


def test_as_recorded_a_tape_is_told_and_not_sorted(path: Path) -> None:
    tape = make_tape(path, [5_000_000, 3_000_000, 2_000_000, 0, 6_000_000])
    events, said = told(tape, order="recorded")
    assert stamps(events) == [0, -2_000_000, -3_000_000, -5_000_000, 1_000_000]
    assert len(said) == 1
    assert said[0].endswith("played as it is")


def test_a_tape_that_is_too_large_is_told_and_not_sorted(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_module, "SORTED_BYTES", 500)
    tape = make_tape(path, [5_000_000, 3_000_000, 2_000_000, 0, 6_000_000])
    events, said = told(tape)
    assert dues(events) == [0, 0, 0, 0, 1_000_000]
    assert len(said) == 1
    assert said[0].endswith("too large to be sorted, it is played as it is")


def test_one_wrong_clock_is_played_in_its_place_and_told() -> None:
    events, said = told(input_file("b/b43_one_bad_time_far_back.csv"))
    assert dues(events) == [0, 200_000, 200_000, 400_000, 600_000]
    assert len(said) == 1
    assert "trade 3 (KR7005930003) is 26.9 years older" in said[0]


def test_a_damaged_tape_out_of_order_is_played_up_to_the_damage(path: Path) -> None:
    tape = make_tape(path, [5_000_000, 3_000_000, 2_000_000, 0] * 3_000)
    packed = gzip.compress(tape.read_bytes())
    tape.write_bytes(packed[: len(packed) // 2])
    events = Replay([tape], ReplayOptions()).events(START_US, Refusals())
    played: list[Event] = []
    with pytest.raises(TapeError, match="gzip damaged after line"):
        played.extend(events)
    assert played
    assert dues(played) == sorted(dues(played))


def test_a_gap_is_told_when_it_begins() -> None:
    """At the second trade at the latest, not when the gap is over."""
    tape = input_file("b/b35_interleaved_months.csv")
    said: list[str] = []
    options = ReplayOptions(speed=10)
    events = Replay([tape], options, tell=said.append).events(START_US, Refusals())
    first = list(islice(events, 5))
    assert dues(first) == [0, 10_000, 20_000, 30_000, 40_000]
    assert [line for line in said if "gap" in line] == []
    next(events)
    [gap] = [line for line in said if "gap" in line]
    assert gap.startswith("a gap: the next trade is due in 3 days, at 2026-03-2")
    assert "--max-gap 10" in gap
    _, said = told(tape, speed=10, max_gap_s=10)
    assert not any("gap" in line for line in said)


def test_a_gap_beyond_all_years_is_told(path: Path) -> None:
    _, said = told(make_tape(path, [0, 50 * 31_557_600_000_000]), speed=0.01)
    assert "due in 5000 years, at 2100-01-01 00:00:00 UTC or later" in said[0]


@pytest.mark.parametrize("speed", [1.0, 10.0])
def test_a_tape_without_length_is_not_repeated_at_full_speed(speed: float) -> None:
    """Ten trades of one moment: ten a second, times the speed."""
    tape = input_file("b/b41_same_time.csv")
    said: list[str] = []
    options = ReplayOptions(loop=0, speed=speed)
    events = list(
        islice(Replay([tape], options, tell=said.append).events(0, Refusals()), 100)
    )
    assert dues(events) == [int(n * 1e6 / speed) for n in range(10) for _ in range(10)]
    assert len(said) == 1
    assert "shorter than a second: a pass takes" in said[0]


def test_a_short_tape_of_many_trades_is_repeated_at_a_bounded_rate(path: Path) -> None:
    tape = make_tape(path, [0] * 5_000)
    options = ReplayOptions(loop=2)
    events = list(Replay([tape], options).events(START_US, Refusals()))
    assert set(dues(events)) == {0, 5_000_000}


def test_a_tape_with_a_length_is_repeated_at_its_own_pace(path: Path) -> None:
    events, said = told(make_tape(path, [0, 1_000_000]), loop=2, speed=4)
    assert dues(events) == [0, 250_000, 251_000, 501_000]
    assert said == []


def test_order_and_gaps_do_not_matter_at_a_fixed_rate(path: Path) -> None:
    tape = make_tape(path, [500_000_000, 0, 0, 0, 0, 900_000_000])
    events, said = told(tape, rate=1_000)
    assert dues(events) == [n * 1_000 for n in range(6)]
    assert said == []
