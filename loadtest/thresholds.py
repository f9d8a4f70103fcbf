"""What a run must not do, and whether it did: ``lag.p99>250ms``. Pure.

A rule names a metric, an operator and a limit, and is broken when it holds. A metric
of which nothing was measured breaks its rule: what was not seen has not held.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median
from typing import Final, NamedTuple

from loadtest.client_mix import KINDS
from loadtest.figures import words
from loadtest.figures.percentiles import mean_of
from loadtest.results import PROMPT, Check, KindOutcome, Outcome, Points, Summary

FIGURES: Final = ("mean", "p50", "p90", "p99", "p999", "max")
OPERATORS: Final = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
DISTRIBUTIONS: Final[Mapping[str, Callable[[Outcome], Summary]]] = {
    "lag": lambda outcome: outcome.lag_ms,
    "publish": lambda outcome: outcome.publish_ms,
    "fanout": lambda outcome: outcome.fanout_ms,
    "staleness": lambda outcome: outcome.staleness_ms,
    "feed.behind": lambda outcome: outcome.feeding.behind_ms,
}
COUNTS: Final[Mapping[str, Callable[[Outcome], float | None]]] = {
    # Some are found outside of any client: only their words are counted.
    "faults": lambda o: max(sum(kind.faults for kind in o.kinds), len(o.faults)),
    # Stalled clients are there to be closed.
    "clients.lost": lambda o: _add_up(
        sum(kind.closes.values()) * (kind.kind != "stalled") for kind in o.kinds
    ),
    "clients.refused": lambda o: _add_up(kind.refused for kind in o.kinds),
    "clients.unseen": lambda o: _add_up(kind.unseen for kind in _prompt(o)),
    "merged.windows": lambda o: _add_up(kind.merged_windows for kind in _prompt(o)),
    "ledger.problems": lambda o: len(o.books.problems),
    "audit.differences": lambda o: (
        None if o.audit is None else o.audit.difference_count
    ),
}
ALWAYS: Final = ("faults>0", "clients.unseen>0", "ledger.problems>0")
"""Rules of every run: what is promised is not a matter of thresholds."""
ALWAYS_IF_AUDITED: Final = "audit.differences>0"

CLIMB_EVERY_S = 5
UNSTEADY_MIB = 4.0
"""A process whose memory is this much larger or smaller need not have grown."""

_ANY = "|".join
_FIGURE = f"({_ANY(FIGURES)})"


class Quantity(NamedTuple):
    """What metrics of one form measure: the form, units by what they are of the base,
    and how a value is said.
    """

    form: str
    units: Mapping[str, float]
    words: Callable[[float], str]


QUANTITIES: Final = {
    "time": Quantity(
        rf"({_ANY(map(re.escape, DISTRIBUTIONS))})\.{_FIGURE}"
        rf"|(lag|staleness)\.({_ANY(KINDS)})\.{_FIGURE}",
        {"ms": 1.0, "s": 1_000.0},
        words.duration,
    ),
    "CPU": Quantity(
        r"(cpu\.[^.]+|machine\.cpu)\.(max|mean)", {"": 1.0, "%": 0.01}, words.cores
    ),
    "memory": Quantity(
        r"memory\.[^.]+\.max",
        {"MiB": 1.0, "GiB": 1_024.0},
        lambda mib: words.size(mib * 2**20),
    ),
    "growth": Quantity(
        r"memory\.[^.]+\.growth", {"%": 0.01}, lambda share: f"{share:+.1%}"
    ),
    "climb": Quantity(
        r"memory\.[^.]+\.climb", {"MiB": 1.0}, lambda mib: f"{mib:+.2f} MiB a minute"
    ),
    "count": Quantity(_ANY(map(re.escape, COUNTS)), {"": 1.0}, words.count),
}
_RULE = re.compile(
    r"\s*(?P<metric>[^<>=]*?)\s*(?P<sign>[<>]=?)\s*"
    r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z%]*)\s*"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One threshold: broken when ``metric`` ``sign`` ``limit`` holds."""

    text: str
    metric: str
    sign: str
    limit: float
    """In ms, cores, MiB, shares, MiB a minute or a count."""
    quantity: str
    """What the metric measures: a key of ``QUANTITIES``."""

    def check(self, outcome: Outcome) -> Check:
        """Compare what the metric came to with the limit."""
        value = measure(self.metric, outcome)
        if value is None:
            return Check(self.text, None, "nothing measured", is_broken=True)
        word = QUANTITIES[self.quantity].words
        text = word(value)
        if value != self.limit and text == word(self.limit):
            # It must not look like a limit that it is not.
            text = f"{value:,.3f}"
        return Check(self.text, value, text, OPERATORS[self.sign](value, self.limit))


def parse(text: str) -> Rule:
    """Return the rule that ``text`` states.

    Raises ValueError with a sentence that names the rule, the part and what is allowed.
    """
    rule = _RULE.fullmatch(text)
    if rule is None:
        raise ValueError(
            f"threshold {text!r}: should be metric, one of > >= < <=, and a limit, "
            "like lag.p99>250ms"
        )
    metric = rule["metric"]
    quantities = QUANTITIES.items()
    quantity = next((n for n, q in quantities if re.fullmatch(q.form, metric)), None)
    if quantity is None:
        raise ValueError(f"threshold {text!r}: no metric {metric!r} (docs/scaling.md)")
    units = QUANTITIES[quantity].units
    if rule["unit"] not in units:
        raise ValueError(
            f"threshold {text!r}: {metric} is {quantity} and needs a number "
            + " or ".join(f"in {unit}" if unit else "alone" for unit in units)
        )
    limit = float(rule["number"]) * units[rule["unit"]]
    return Rule(text.strip(), metric, rule["sign"], limit, quantity)


def check(rules: Iterable[Rule], outcome: Outcome) -> tuple[Check, ...]:
    """Check what every run promises, then the rules given, each once."""
    standing = [*ALWAYS, ALWAYS_IF_AUDITED] if outcome.audit is not None else ALWAYS
    texts = [one for one in standing if measure(parse(one).metric, outcome) is not None]
    unique = {rule.text: rule for rule in (*map(parse, texts), *rules)}
    return tuple(rule.check(outcome) for rule in unique.values())


def measure(metric: str, outcome: Outcome) -> float | None:
    """Return what a metric came to; None where nothing was measured."""
    if metric in COUNTS:
        return COUNTS[metric](outcome)
    head, _, figure = metric.rpartition(".")
    family, _, name = head.partition(".")
    if family == "machine":
        return _figure(outcome.seconds.machine_cpu, figure)
    if family in ("cpu", "memory"):
        # The worst of all processes of a name: one may have been restarted.
        series = [
            process.cpu if family == "cpu" else process.memory_mib
            for process in outcome.processes
            if _plain(process.name) == _plain(name)
        ]
        figures = [_figure(points, figure) for points in series]
        return max((value for value in figures if value is not None), default=None)
    if head in DISTRIBUTIONS:
        summary = DISTRIBUTIONS[head](outcome)
    else:
        kinds = [kind for kind in outcome.kinds if kind.kind == name]
        summary = getattr(kinds[0], f"{family}_ms") if kinds else Summary(0)
    value: float | None = getattr(summary, figure)
    return value


def _add_up(counts: Iterable[float]) -> float | None:
    """Return the sum, None of no kinds of clients."""
    every = list(counts)
    return sum(every) if every else None


def _prompt(outcome: Outcome) -> list[KindOutcome]:
    return [kind for kind in outcome.kinds if kind.kind in PROMPT]


def _plain(name: str) -> str:
    """Return a name as it may be typed without quotes: ``throttle-jvm``."""
    return name.strip().lower().replace(" ", "-")


def _figure(points: Points, figure: str) -> float | None:
    measured = [point for point in points if point is not None]
    if figure == "growth":
        return _growth(measured)
    if figure == "climb":
        return _climb(points)
    return max(measured, default=None) if figure == "max" else mean_of(measured)


def _growth(measured: Sequence[float]) -> float | None:
    """Return by which share the mean of the last third is above the second's."""
    third = len(measured) // 3
    if not third:
        return None
    return fmean(measured[-third:]) / fmean(measured[third : 2 * third]) - 1


def _climb(points: Points) -> float | None:
    """Return the rise in MiB a minute, of points by the second, after two fifths.

    It is the median slope between two moments: swings do not count. Nor do less than
    ``UNSTEADY_MIB`` in all.
    """
    begin, later = len(points) * 2 // 5, range(len(points))[::CLIMB_EVERY_S]
    late = [(s, mib) for s in later if s >= begin if (mib := points[s]) is not None]
    if len(late) < 2:
        return None
    slopes = [(b - a) / (t - s) for (s, a), (t, b) in combinations(late, 2)]
    rise = median(slopes)
    return 60 * rise if abs(rise) * (len(points) - begin) > UNSTEADY_MIB else 0.0
