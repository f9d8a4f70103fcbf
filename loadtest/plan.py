"""What a load test does, made of what was asked for. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from cli.commands.load_choices import LoadChoices
from ingest.sources.rate_profile import Profile
from ingest.sources.replay import ReplayOptions
from ingest.sources.simulator import Simulator
from loadtest.client_mix import Audience, parse_mix
from loadtest.feed.feed_plan import FeedPlan
from loadtest.scenarios import SCENARIOS, Scenario
from loadtest.thresholds import Rule, parse

DEFAULT_SCENARIO = "short"
POLL_EVERY_S = (10.0, 2.0)
"""The ways of polling that a stream is compared with."""

MAX_GAP_S = 10.0
"""No silence of a tape lasts longer: nothing is loaded meanwhile."""

SPARE_S = 60
"""A feed that warms up goes on until the next one is ready."""


@dataclass(frozen=True)
class Search:
    """A capacity search: what it raises, within which bounds, by multiples of what."""

    raised: Literal["rate", "clients"]
    start: float
    most: float
    grain: float
    step_s: float = 24


SEARCHES = {
    "rate": Search("rate", 10_000, 400_000, 1_000),
    "clients": Search("clients", 1_000, 15_000, 100),
}


@dataclass(frozen=True)
class LoadPlan:
    """All that a load test does."""

    title: str
    command: str
    warm_up: FeedPlan
    """What is fed for ``warm_up_s`` before anything is measured."""
    feed: FeedPlan
    audience: Audience
    seconds: float
    warm_up_s: float
    processes: int
    rules: tuple[Rule, ...]
    token: str | None = None
    """What clients show to the gateways."""
    search: Search | None = None
    polls_every_s: tuple[float, ...] = ()
    """The ways of polling that the stream is compared with; none: no comparison."""
    deployment: Mapping[str, Any] = field(default_factory=dict)
    """How the deployment is started, if one is: arguments of ``local``."""


def plan_of(choices: LoadChoices, command: str = "tickthrottle load") -> LoadPlan:
    """Return what was asked for, the rest as its scenario says.

    ``command`` is the line that asked, for the report.

    Raises ValueError with a sentence that names what is wrong, its value and the rule.
    """
    name = choices.scenario or DEFAULT_SCENARIO
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise ValueError(f"scenario {name!r}: must be one of {', '.join(SCENARIOS)}")
    if scenario.needs_tape and not choices.tapes:
        raise ValueError(f"scenario {name!r}: needs a recording; name one with --tape")
    if scenario.deployment and choices.gateways:
        raise ValueError(f"scenario {name!r}: starts what it loads; takes no --gateway")
    _check_choices(choices)
    is_plain = choices.raised is not None or choices.compares_polling
    asks = dict(scenario.asks)
    if is_plain and choices.scenario is None:
        # A search or a comparison of clients that do all sorts of things says little.
        asks["mix"] = "watch:1"
    given = choices.model_dump(exclude_unset=True)
    asked = LoadChoices(**{**asks, **given})
    profile = _profile(choices, asked)
    seconds = asked.seconds
    if "seconds" not in given and profile is not None and profile.seconds < inf:
        seconds = profile.seconds
    return LoadPlan(
        title=_title(name, scenario, choices),
        command=command,
        warm_up=_feed(asked, _first_rate(profile), asked.warm_up_s + SPARE_S),
        feed=_feed(asked, profile, seconds),
        audience=Audience(
            clients=asked.clients,
            mix=parse_mix(asked.mix),
            keys=asked.keys,
        ),
        seconds=seconds,
        warm_up_s=asked.warm_up_s,
        processes=asked.processes,
        rules=tuple(map(parse, asked.rules)),
        search=None if asked.raised is None else SEARCHES[asked.raised],
        polls_every_s=POLL_EVERY_S if asked.compares_polling else (),
        deployment=scenario.deployment,
    )


def _check_choices(choices: LoadChoices) -> None:
    given = choices.model_fields_set
    if {"rate", "profile"} <= given:
        raise ValueError(f"rate {choices.rate:g}: the profile sets the rate already")
    if choices.tapes and "speed" in given and given & {"rate", "profile"}:
        raise ValueError(
            f"speed {choices.speed:g}: has no effect beside the rate "
            f"{choices.profile or choices.rate}"
        )
    if not choices.tapes and "speed" in given:
        raise ValueError(f"speed {choices.speed:g}: is for a tape, and there is none")
    if choices.raised is not None and choices.compares_polling:
        raise ValueError("find-capacity and compare-polling: one at a time")
    if choices.raised == "rate" and (choices.profile or choices.tapes):
        raise ValueError(
            "find-capacity rate: takes no profile and no tape; "
            "the simulator's rate is raised"
        )


def _profile(choices: LoadChoices, asked: LoadChoices) -> Profile | None:
    """Return the rate over time; None for a tape at its own pace."""
    given = choices.model_fields_set
    if choices.tapes and not given & {"rate", "profile"}:
        return None
    if asked.profile is None or "rate" in given:
        return Profile.steady(asked.rate)
    return Profile.parse(asked.profile)


def _first_rate(profile: Profile | None) -> Profile | None:
    """Return what leads up to a profile: its first rate, but for an opening's spike."""
    if profile is None:
        return None
    first = profile.stretches[0]
    rate = first.to_rate if first.shape == "opening" else first.from_rate
    return Profile.steady(max(rate, 1.0))


def _feed(asked: LoadChoices, profile: Profile | None, seconds: float) -> FeedPlan:
    if not asked.tapes:
        market = Simulator(
            instruments=asked.instruments, profile=profile, malformed=asked.malformed
        )
        return FeedPlan(market, seconds=seconds)
    played = ReplayOptions(
        speed=asked.speed if profile is None else 1.0,
        loop=0,
        max_gap_s=MAX_GAP_S if profile is None else None,
        profile=profile,
    )
    return FeedPlan(played, asked.tapes, seconds=seconds)


def _title(name: str, scenario: Scenario, choices: LoadChoices) -> str:
    if choices.raised is not None:
        what = "trades/s" if choices.raised == "rate" else "clients"
        return f"Capacity: how many {what}"
    if choices.compares_polling:
        return "Polling against WebSocket"
    if choices.scenario is None:
        return "Load test"
    return f"{name.capitalize()}: {scenario.words}"
