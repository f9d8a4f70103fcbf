"""From options to what is done: `plan.py`, `scenarios.py`."""

from pathlib import Path

import pytest

from cli.commands.load_choices import LoadChoices
from ingest.sources.replay import ReplayOptions
from loadtest.client_mix import parse_mix
from loadtest.plan import plan_of
from loadtest.scenarios import SCENARIOS
from loadtest.thresholds import parse

TAPE = (Path("day.csv.gz"),)


def test_every_scenario_is_a_plan() -> None:
    """All its texts can be read, and its length is that of its profile."""
    for name, scenario in SCENARIOS.items():
        tapes = TAPE if scenario.needs_tape else ()
        plan = plan_of(LoadChoices(scenario=name, tapes=tapes))
        asked = LoadChoices(**scenario.asks)
        assert plan.audience.clients == asked.clients
        assert plan.audience.mix == parse_mix(asked.mix)
        assert plan.rules == tuple(map(parse, asked.rules))
        assert plan.seconds == plan.feed.seconds
        assert scenario.words in plan.title


def test_a_scenario_that_starts_what_it_loads_takes_no_gateway() -> None:
    """What it asks of a deployment cannot be had of one that runs."""
    with pytest.raises(ValueError, match="takes no --gateway"):
        plan_of(LoadChoices(scenario="soak", gateways=("http://127.0.0.1:1",)))


def test_options_win_over_the_scenario() -> None:
    plan = plan_of(LoadChoices(scenario="standard", rate=5_000, clients=7, seconds=20))
    assert plan.feed.source.profile is not None
    assert plan.feed.source.profile.rate(1) == 5_000
    assert (plan.audience.clients, plan.audience.keys) == (7, 30)
    assert plan.seconds == 20


def test_a_profile_is_measured_as_long_as_it_lasts() -> None:
    """And before it, its first rate is fed."""
    plan = plan_of(LoadChoices(profile="700:30s,5000:10s"))
    assert plan.seconds == 40
    assert plan.warm_up.source.profile is not None
    assert plan.warm_up.source.profile.rate(100) == 0 or plan.warm_up.seconds
    assert plan.warm_up.source.profile.rate(1) == 700


def test_before_an_opening_it_is_calm() -> None:
    """The spike is what is measured, not what warms up."""
    plan = plan_of(LoadChoices(scenario="opening"))
    assert plan.warm_up.source.profile is not None
    assert plan.warm_up.source.profile.rate(1) == 900
    assert plan.feed.source.profile is not None
    assert plan.feed.source.profile.rate(0) > 5_000


def test_tapes_are_played_until_the_end() -> None:
    """At the scenario's speed, or the one that was given."""
    plan = plan_of(LoadChoices(scenario="stress", tapes=TAPE))
    assert plan.feed.source == ReplayOptions(speed=20, loop=0, max_gap_s=10)
    assert plan.feed.seconds == plan.seconds
    slow = plan_of(LoadChoices(tapes=TAPE, speed=3)).feed
    assert slow.source == ReplayOptions(speed=3, loop=0, max_gap_s=10)


def test_a_search_is_for_plain_clients_unless_a_scenario_is_named() -> None:
    plan = plan_of(LoadChoices(raised="clients"))
    assert plan.audience.mix == {"watch": 1}
    assert plan.search is not None
    assert plan.search.start == 1_000
    mixed = plan_of(LoadChoices(raised="clients", scenario="short"))
    assert "slow" in mixed.audience.mix


NONSENSE = [
    (LoadChoices(scenario="busy"), "scenario 'busy': must be one of standard,"),
    (LoadChoices(scenario="stress"), "scenario 'stress': needs a recording"),
    (
        LoadChoices(rate=5, profile="9:1s"),
        "rate 5: the profile sets the rate already",
    ),
    (LoadChoices(speed=2), "speed 2: is for a tape"),
    (
        LoadChoices(tapes=TAPE, speed=2, rate=7),
        "speed 2: has no effect beside the rate 7",
    ),
    (LoadChoices(mix="fast:1"), "mix 'fast:1': a kind is one of"),
    (LoadChoices(rules=("lag>1",)), "threshold 'lag>1'"),
    (LoadChoices(profile="x"), "part 'x'"),
    (LoadChoices(raised="rate", tapes=TAPE), "find-capacity rate: takes no"),
    (
        LoadChoices(raised="rate", compares_polling=True),
        "find-capacity and compare-polling: one at a time",
    ),
    (LoadChoices(keys=0), "keys 0: has to be at least 1"),
]


def test_what_makes_no_sense_is_told() -> None:
    """One sentence, with the option, its value and the rule."""
    for choices, words in NONSENSE:
        with pytest.raises(ValueError, match=words.replace("(", r"\(")):
            plan_of(choices)
    plan_of(LoadChoices(profile="900"))
