"""The rate over time: what is written is what falls due."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.rate_profile import OPENING_PEAK, InvalidProfile, Profile, Stretch

rates = st.floats(0, 10_000).map(lambda rate: round(rate, 2))
seconds = st.floats(0.01, 5).map(lambda time: round(time, 2))
parts = st.one_of(
    st.builds("{}:{}s".format, rates, seconds),
    st.builds("{}..{}:{}s".format, rates, rates, seconds),
    st.builds("opening({}):{}s".format, rates, seconds),
)
bursts = st.builds("{}/10ms@{}s".format, rates, seconds)
profiles = st.builds(
    lambda stretches, more: Profile.parse(",".join([*stretches, *more])),
    st.lists(parts, min_size=1, max_size=4),
    st.lists(bursts, max_size=2),
)


def test_steps_follow_each_other() -> None:
    """Each rate holds for its time; then it is over."""
    profile = Profile.parse("900:60s,5000:1m,50_000:500ms")
    assert [profile.rate(at) for at in (0, 59.9, 60, 119.9, 120, 120.4)] == [
        900, 900, 5_000, 5_000, 50_000, 50_000,
    ]  # fmt: skip
    assert profile.rate(120.5) == profile.rate(-1) == 0
    assert profile.seconds == 120.5
    assert profile.total == 900 * 60 + 5_000 * 60 + 25_000
    assert profile.trades(61) == 900 * 60 + 5_000
    assert profile.trades(-1) == 0
    assert profile.trades(1_000) == profile.total


def test_a_ramp_is_a_straight_line() -> None:
    """Half way it has half of the difference; its area is the mean of both ends."""
    profile = Profile.parse("1000..5000:10s, 5000..0:10s")
    assert profile.rate(5) == 3_000
    assert profile.rate(15) == 2_500
    assert profile.trades(10) == 30_000
    assert profile.total == 55_000


def test_an_opening_falls_fast_and_settles() -> None:
    """It begins with its peak and comes down to its rate."""
    profile = Profile.parse("opening(900):600s")
    assert profile.rate(0) == OPENING_PEAK * 900
    assert profile.rate(60) == pytest.approx(900 + 4_500 / 2.718, rel=0.001)
    assert profile.rate(599) == pytest.approx(900, rel=0.001)
    assert profile.peak == 5_400


def test_bursts_come_on_top() -> None:
    """The first one after the given time, none that would not be over in time."""
    profile = Profile.parse("100:90s,1700/100ms@30s")
    assert profile.rate(29.9) == profile.rate(30.11) == profile.rate(0.05) == 100
    assert profile.rate(30.05) == profile.rate(60.05) == 17_100
    assert profile.trades(30.05) == pytest.approx(3_005 + 850)
    assert profile.trades(45) == pytest.approx(4_500 + 1_700)
    assert profile.total == pytest.approx(9_000 + 2 * 1_700)
    assert profile.peak == 17_100


def test_the_last_rate_may_stay_for_ever() -> None:
    """Then there is no end, and no total."""
    profile = Profile.parse("100:10s,900,50/100ms@1s")
    assert profile.seconds == profile.total == inf
    assert profile.rate(1e6 + 0.5) == 900
    assert profile.trades(110.5) == pytest.approx(1_000 + 90_450 + 110 * 50)
    assert Profile.steady(5) == Profile.parse("5")


def test_words_are_for_people() -> None:
    """What it does, in the order in which it does it."""
    text = "900:60s,900..5000:60s,opening(900):1.5m,5,1700/100ms@30s"
    assert Profile.parse(text).words == (
        "900/s for 60 s, then 900 to 5,000/s for 60 s, then an opening of 900/s "
        "for 90 s, then 5/s + 1,700 within 100 ms every 30 s"
    )


@given(profiles)
def test_every_slot_has_its_trades(profile: Profile) -> None:
    """Slots are without a gap, and up to each as many trades as were due by then."""
    begins, given_so_far = 0, 0
    # A slot's end is told in whole microseconds.
    rounding = 0.01 + profile.peak * 1e-6
    for from_us, length_us, trades in profile.slots():
        assert from_us == begins
        assert trades >= 0
        begins += length_us
        given_so_far += trades
        due = profile.trades(begins / 1e6)
        assert due - 1 - rounding <= given_so_far <= due + rounding
    assert begins == pytest.approx(profile.seconds * 1e6, abs=1)


@given(profiles, st.floats(0, 25))
def test_what_is_due_is_the_rate_s_area(profile: Profile, at_s: float) -> None:
    """Trades up to a time grow by the rate at that time."""
    step_s = 1e-6
    grown = profile.trades(at_s + step_s) - profile.trades(at_s)
    low, high = sorted((profile.rate(at_s), profile.rate(at_s + step_s)))
    # At an edge the rate jumps within the step, down to nothing for a moment even.
    assert grown / step_s <= high + low + 1 + high * 0.01
    if low == high:
        assert grown / step_s == pytest.approx(high, rel=0.01, abs=1)


def test_trades_are_spaced_evenly_within_a_slot() -> None:
    """Due times never go back and are as many as the total says."""
    dues = list(Profile.parse("300:1s,0:1s,1000:1s").dues_us())
    assert len(dues) == 1_300
    assert all(one <= other for one, other in pairwise(dues))
    assert dues[:4] == [0, 3_333, 6_666, 10_000]
    assert not [due for due in dues if 1_000_000 < due < 2_000_000]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "part '': must be RATE:TIME"),
        ("900:60", "part '900:60': must be"),
        ("900:60s,", "part '': must be"),
        ("-5:60s", "part '-5:60s': must be"),
        ("900..:60s", "part '900..:60s': must be"),
        ("900..5", "part '900..5': must be"),
        ("opening(900)", r"part 'opening\(900\)': must be"),
        ("2000000:1s", "part '2000000:1s': 2,000,000 trades a second, must be at"),
        ("9:1s,2000/1ms@1s", "part '2000/1ms@1s': 2,000,000 trades a second"),
        ("9:0s", "part '9:0s': the time 0s must be from 1 ms to a week"),
        ("9:200h", "part '9:200h': the time 200h must be"),
        ("9:100h,9:100h", "lasts 720,000 s, must be at most 604,800 s"),
        ("9:1s,5/2s@1s", "part '5/2s@1s': a burst must be over before the next"),
        ("5/100ms@1s", "profile without a rate: must be"),
        ("9,8:1s", "9 before '8:1s': only the last rate may be without a time"),
        ("0", "0: a rate without a time must be above 0"),
    ],
)
def test_what_breaks_a_rule_is_named(text: str, message: str) -> None:
    """The part, its value and the rule, in one sentence."""
    with pytest.raises(InvalidProfile, match=message):
        Profile.parse(text)


def test_an_endless_stretch_is_the_last() -> None:
    """However the profile was made."""
    endless = Stretch(9, 9, inf)
    with pytest.raises(InvalidProfile, match="9: only the last rate may be without"):
        Profile((endless, endless))
