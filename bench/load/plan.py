"""PURE: what a load test does, made of what was asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

from bench.load.audience import Audience, parse_mix
from bench.load.feed_plan import FeedPlan
from bench.load.scenarios import SCENARIOS, Scenario
from bench.load.thresholds import Rule, parse
from ingest.profile import Profile

DEFAULT_SCENARIO = "short"
SEARCH_FROM_TO = {"rate": (10_000, 400_000), "clients": (1_000, 15_000)}
GRAIN = {"rate": 1_000, "clients": 100}
"""A search tries multiples of this."""

SPARE_S = 60
"""A feed that warms up goes on until the next one is ready."""

POLL_EVERY_S = (10.0, 2.0)
"""The ways of polling that a stream is compared with; polling clients do the first."""


@dataclass(frozen=True)
class Choices:
    """What the command line says; None and empty is what it does not say."""

    scenario: str | None = None
    rate: float | None = None
    profile: str | None = None
    tapes: tuple[Path, ...] = ()
    speed: float | None = None
    max_gap: float | None = None
    issues: int = 2_879
    disorder: float | None = None
    repeats: float | None = None
    malformed: float | None = None
    clients: int | None = None
    keys: int | None = None
    mix: str | None = None
    poll_every_s: tuple[float, ...] = POLL_EVERY_S
    seconds: float | None = None
    warm_up_s: float | None = None
    processes: int = 2
    rules: tuple[str, ...] = ()
    raised: Literal["rate", "clients"] | None = None
    start: float | None = None
    most: float | None = None
    step_s: float = 24
    compares_polling: bool = False
    gateways: tuple[str, ...] = ()
    token_file: Path | None = None
    ingest: Mapping[str, Any] = field(default_factory=dict)
    out: Path | None = None
    title: str | None = None
    command: str = "tickthrottle load"


@dataclass(frozen=True)
class Search:
    """A capacity search: what it raises, within which bounds."""

    raised: Literal["rate", "clients"]
    start: float
    most: float
    step_s: float


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


def plan_of(choices: Choices) -> LoadPlan:
    """Return what was asked for, the rest as its scenario says.

    Raises ValueError with a sentence that names what is wrong, its value and the rule.
    """
    name = choices.scenario or DEFAULT_SCENARIO
    scenario = SCENARIOS.get(name)
    if scenario is None:
        raise ValueError(f"scenario {name!r}: must be one of {', '.join(SCENARIOS)}")
    if scenario.needs_tape and not choices.tapes:
        raise ValueError(f"scenario {name!r}: needs a recording; name one with --tape")
    _check_choices(choices)
    profile = _profile(choices, scenario)
    seconds = _first(choices.seconds, _length(profile), scenario.seconds)
    seconds = _check("seconds", seconds, 4, 86_400)
    warm_up_s = _first(choices.warm_up_s, scenario.warm_up_s)
    warm_up_s = _check("warm-up", warm_up_s, 4, 3_600)
    search = _search(choices)
    return LoadPlan(
        title=choices.title or _title(name, scenario, choices),
        command=choices.command,
        warm_up=_feed(choices, scenario, _first_rate(profile), warm_up_s + SPARE_S),
        feed=_feed(choices, scenario, profile, seconds),
        audience=Audience(
            clients=_first(choices.clients, scenario.clients),
            mix=parse_mix(_first(choices.mix, _mix(choices, scenario))),
            keys=_first(choices.keys, scenario.keys),
            poll_every_s=choices.poll_every_s[0],
        ),
        seconds=seconds,
        warm_up_s=warm_up_s,
        processes=choices.processes,
        rules=tuple(parse(text) for text in choices.rules or scenario.rules),
        search=search,
        polls_every_s=choices.poll_every_s if choices.compares_polling else (),
    )


def _check_choices(choices: Choices) -> None:
    if choices.rate is not None and choices.profile is not None:
        raise ValueError(f"rate {choices.rate:g}: a profile says the rate already")
    if choices.tapes and choices.speed is not None:
        given = choices.rate if choices.profile is None else choices.profile
        if given is not None:
            raise ValueError(
                f"speed {choices.speed:g}: of no use beside the rate {given}"
            )
    if not choices.tapes:
        for name in ("speed", "max_gap"):
            if getattr(choices, name) is not None:
                raise ValueError(
                    f"{name.replace('_', '-')} {getattr(choices, name):g}: "
                    "is that of a tape, and there is none"
                )
    if choices.raised is not None and choices.compares_polling:
        raise ValueError("find-capacity and compare-polling: one at a time")
    if choices.raised == "rate" and (choices.profile or choices.tapes):
        raise ValueError(
            "find-capacity rate: has no use for a profile or a tape; "
            "the simulator's rate is raised"
        )


def _profile(choices: Choices, scenario: Scenario) -> Profile | None:
    """Return the rate over time; None for a tape at its own pace."""
    if choices.profile is not None:
        return Profile.parse(choices.profile)
    if choices.rate is not None:
        return Profile.steady(_check("rate", choices.rate, 0.1, 1_000_000))
    if choices.tapes:
        return None
    if scenario.profile is not None:
        return Profile.parse(scenario.profile)
    return Profile.steady(scenario.rate)


def _length(profile: Profile | None) -> float | None:
    return None if profile is None or profile.seconds == inf else profile.seconds


def _first_rate(profile: Profile | None) -> Profile | None:
    """Return what leads up to a profile: its first rate, but for an opening's spike."""
    if profile is None:
        return None
    first = profile.stretches[0]
    rate = first.to_rate if first.shape == "opening" else first.from_rate
    return Profile.steady(max(rate, 1.0))


def _feed(
    choices: Choices, scenario: Scenario, profile: Profile | None, seconds: float
) -> FeedPlan:
    is_own_pace = profile is None
    return FeedPlan(
        profile=profile,
        tapes=choices.tapes,
        speed=_first(choices.speed, scenario.speed) if is_own_pace else 1.0,
        loop=0 if choices.tapes else 1,
        max_gap_s=choices.max_gap if is_own_pace else None,
        issues=choices.issues,
        disorder=choices.disorder,
        repeats=choices.repeats,
        malformed=choices.malformed or 0.0,
        seconds=seconds,
    )


def _mix(choices: Choices, scenario: Scenario) -> str:
    # A search or a comparison of an audience that does all sorts of things says little.
    is_plain = choices.raised is not None or choices.compares_polling
    return "watch:1" if is_plain and choices.scenario is None else scenario.mix


def _search(choices: Choices) -> Search | None:
    if choices.raised is None:
        return None
    start, most = SEARCH_FROM_TO[choices.raised]
    start = _first(choices.start, start)
    most = _first(choices.most, max(most, start))
    grain = GRAIN[choices.raised]
    if not grain <= start <= most:
        raise ValueError(
            f"start {start:g}: must be at least {grain:,} and at most {most:g}"
        )
    return Search(choices.raised, start, most, choices.step_s)


def _title(name: str, scenario: Scenario, choices: Choices) -> str:
    if choices.raised is not None:
        what = "trades/s" if choices.raised == "rate" else "clients"
        return f"Capacity: how many {what}"
    if choices.compares_polling:
        return "Polling against WebSocket"
    if choices.scenario is None:
        return "Load test"
    return f"{name.capitalize()}: {scenario.words}"


def _check(name: str, value: float, lowest: float, highest: float) -> float:
    if not lowest <= value <= highest:
        raise ValueError(f"{name} {value:g}: must be from {lowest:g} to {highest:,g}")
    return value


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
