"""From options to what is done: `bench/load/plan.py`, `bench/load/scenarios.py`."""

from pathlib import Path

import pytest

from bench.load.audience import parse_mix
from bench.load.plan import Choices, plan_of
from bench.load.scenarios import SCENARIOS
from bench.load.thresholds import parse

TAPE = (Path("day.csv.gz"),)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_is_a_plan(name: str) -> None:
    """All its texts can be read, and its length is that of its profile."""
    scenario = SCENARIOS[name]
    tapes = TAPE if scenario.needs_tape else ()
    plan = plan_of(Choices(scenario=name, tapes=tapes))
    assert plan.audience.clients == scenario.clients
    assert plan.audience.mix == parse_mix(scenario.mix)
    assert plan.rules == tuple(map(parse, scenario.rules))
    assert plan.seconds == scenario.seconds
    assert scenario.words in plan.title


def test_options_win_over_the_scenario() -> None:
    """What is not given stays."""
    plan = plan_of(Choices(scenario="standard", rate=5_000, clients=7, seconds=20))
    assert plan.feed.profile is not None
    assert plan.feed.profile.rate(1) == 5_000
    assert (plan.audience.clients, plan.audience.keys) == (7, 30)
    assert plan.seconds == 20


def test_a_profile_is_measured_as_long_as_it_lasts() -> None:
    """And before it, its first rate is fed."""
    plan = plan_of(Choices(profile="700:30s,5000:10s"))
    assert plan.seconds == 40
    assert plan.warm_up.profile is not None
    assert plan.warm_up.profile.rate(100) == 0 or plan.warm_up.seconds
    assert plan.warm_up.profile.rate(1) == 700


def test_before_an_opening_it_is_calm() -> None:
    """The spike is what is measured, not what warms up."""
    plan = plan_of(Choices(scenario="opening"))
    assert plan.warm_up.profile is not None
    assert plan.warm_up.profile.rate(1) == 900
    assert plan.feed.profile is not None
    assert plan.feed.profile.rate(0) > 5_000


def test_tapes_are_played_until_the_end() -> None:
    """At the scenario's speed, or the one that was given."""
    plan = plan_of(Choices(scenario="stress", tapes=TAPE))
    assert (plan.feed.speed, plan.feed.loop) == (20, 0)
    assert plan.feed.seconds == plan.seconds
    assert plan_of(Choices(tapes=TAPE, speed=3)).feed.speed == 3


def test_a_search_is_for_plain_clients_unless_a_scenario_is_named() -> None:
    """Slow clients would decide it."""
    plan = plan_of(Choices(raised="clients"))
    assert plan.audience.mix == {"watch": 1}
    assert plan.search is not None
    assert plan.search.start == 1_000
    mixed = plan_of(Choices(raised="clients", scenario="short"))
    assert "slow" in mixed.audience.mix


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        (Choices(scenario="busy"), "scenario 'busy': must be one of standard,"),
        (Choices(scenario="stress"), "scenario 'stress': needs a recording"),
        (Choices(rate=5, profile="9:1s"), "rate 5: a profile says the rate already"),
        (Choices(rate=0), "rate 0: must be from 0.1"),
        (Choices(speed=2), "speed 2: is that of a tape"),
        (Choices(max_gap=2), "max-gap 2: is that of a tape"),
        (Choices(tapes=TAPE, speed=2, rate=7), "speed 2: of no use beside the rate 7"),
        (Choices(seconds=1), "seconds 1: must be from 4 to 86,400"),
        (Choices(warm_up_s=1), "warm-up 1: must be from 4 to 3,600"),
        (Choices(mix="fast:1"), "mix 'fast:1': a kind is one of"),
        (Choices(rules=("lag>1",)), "threshold 'lag>1'"),
        (Choices(profile="900"), None),
        (Choices(profile="x"), "part 'x'"),
        (Choices(raised="rate", tapes=TAPE), "find-capacity rate: has no use for"),
        (
            Choices(raised="rate", compares_polling=True),
            "find-capacity and compare-polling: one at a time",
        ),
        (Choices(raised="rate", start=5), "start 5: must be at least 1,000"),
        (Choices(keys=0), "keys 0: has to be at least 1"),
    ],
)
def test_what_makes_no_sense_is_told(choices: Choices, words: str | None) -> None:
    """One sentence, with the option, its value and the rule."""
    if words is None:
        plan_of(choices)
        return
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        plan_of(choices)
