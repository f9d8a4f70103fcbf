"""Did it hold? The first line of every report. Pure."""

from collections.abc import Sequence

from loadtest.figures import words
from loadtest.figures.percentiles import mean_of
from loadtest.results import Capacity, Check, Outcome, Result

BUSIEST = 3
"""So many processes are named where something gave way."""

LOADS = {"rate": "trades a second", "clients": "clients"}


def headline(result: Result) -> str:
    if result.capacity is not None and result.is_passed:
        return _limit(result.capacity)
    checks = result.outcome.checks
    broken = sum(check.is_broken for check in checks)
    if result.is_passed or not broken:
        return "It held" if result.is_passed else "It did not hold"
    rules = words.plural(len(checks), "threshold")
    return f"It did not hold: {words.count(broken)} of {rules} broke"


def detail(result: Result) -> str:
    """Return what it was about: the load, or what gave way at the limit."""
    if result.capacity is not None and result.is_passed:
        return gave_way(result.capacity)
    return in_short(result.outcome)


def in_short(outcome: Outcome) -> str:
    """Return what was asked of the system, and how well it did, in a sentence."""
    load = (
        f"{words.count(outcome.feeding.acknowledged)} trades in "
        f"{words.duration(outcome.to_ms - outcome.from_ms)}"
    )
    clients = sum(kind.clients for kind in outcome.kinds)
    if clients:
        load = f"{words.plural(clients, 'client')}, {load}"
    lag = outcome.lag_ms
    if not lag.count:
        return f"{load}."
    return (
        f"{load}: half of all updates came within {words.duration(lag.p50)} of their "
        f"window's end, 99 of 100 within {words.duration(lag.p99)}."
    )


def broken_words(checks: Sequence[Check]) -> list[str]:
    """Return the rules that broke, each with what was found."""
    return [f"{check.rule}: {check.text}" for check in checks if check.is_broken]


def gave_way(capacity: Capacity) -> str:
    """Return what broke at the first bad load, and which processes were busy then."""
    bad = [step for step in capacity.steps if step.load == capacity.first_bad]
    failed = [step.outcome for step in bad if not step.is_good]
    if not failed:
        return "Nothing gave way."
    means = [(mean_of(one.cpu) or 0.0, one.name) for one in failed[-1].processes]
    busiest = [
        f"{name} {words.cores(share)}"
        for share, name in sorted(means, reverse=True)[:BUSIEST]
        if share
    ]
    broken = broken_words(failed[-1].checks)
    return f"What gave way first: {'; '.join([*broken, *busiest])}."


def _limit(capacity: Capacity) -> str:
    what = LOADS[capacity.raised]
    if capacity.last_good is None:
        return f"It held at no number of {what} that was tried"
    good = f"{words.count(capacity.last_good)} {what}"
    if capacity.first_bad is None:
        return f"It held throughout, up to {good}"
    return f"It held up to {good}, and no longer at {words.count(capacity.first_bad)}"
