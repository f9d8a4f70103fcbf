"""What a run must not do, and whether it did: ``lag.p99>250ms``. Pure.

A rule names a metric, an operator and a limit, and is broken when it holds. A metric
of which nothing was measured breaks its rule: what was not seen has not held.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from deploy.loadtest.client_mix import KINDS
from deploy.loadtest.figures import words
from deploy.loadtest.results import (
    PROMPT,
    Check,
    KindOutcome,
    Outcome,
    Points,
    ProcessUsage,
    Summary,
)

FIGURES: Final = ("mean", "p50", "p90", "p99", "p999", "max")
OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
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
OF_KINDS: Final[Mapping[str, Callable[[KindOutcome], Summary]]] = {
    "lag": lambda kind: kind.lag_ms,
    "staleness": lambda kind: kind.staleness_ms,
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

METRICS: Final = (
    f"lag|publish|fanout|staleness|feed.behind.{'|'.join(FIGURES)}, "
    f"lag|staleness.<kind>.{'|'.join(FIGURES)} with a kind of {', '.join(KINDS)}, "
    "cpu.<process>.max|mean, memory.<process>.max, machine.cpu.max|mean, "
    f"{', '.join(COUNTS)}"
)

_RULE = re.compile(r"(?P<metric>[^<>=]*)(?P<sign>[<>]=?)(?P<limit>[^<>=]*)")
_LIMIT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[A-Za-z%]*)")
_ONE_CORE = "a number of cores, or % of one core"


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a metric measures: its units, and how a value of it is worded."""

    name: str
    units: Mapping[str, float]
    """By how much a number in each unit is multiplied; ``""`` is a bare number."""
    units_in_words: str
    word: Callable[[float], str]
    word_exactly: Callable[[float], str]


TIME = Quantity(
    "a time",
    {"ms": 1.0, "s": 1_000.0},
    "a number in ms or s",
    words.duration,
    lambda ms: f"{ms:,.3f} ms",
)
CPU = Quantity(
    "CPU",
    {"%": 0.01, "": 1.0},
    _ONE_CORE,
    words.cores,
    lambda share: f"{share * 100:,.3f}%",
)
MEMORY = Quantity(
    "memory",
    {"MiB": 1.0, "GiB": 1_024.0},
    "a number in MiB or GiB",
    lambda mib: words.size(mib * 2**20),
    lambda mib: f"{mib:,.3f} MiB",
)
COUNT = Quantity(
    "a count", {"": 1.0}, "a bare number", words.count, lambda number: f"{number:,g}"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One threshold: broken when ``metric`` ``sign`` ``limit`` holds."""

    text: str
    metric: str
    sign: str
    limit: float
    """In the quantity's first unit: ms, cores, MiB or a count."""
    quantity: Quantity

    def check(self, outcome: Outcome) -> Check:
        """Compare what the metric came to with the limit."""
        found = measure(self.metric, outcome)
        if found is None:
            return Check(self.text, None, "nothing measured", is_broken=True)
        is_broken = OPERATORS[self.sign](found, self.limit)
        return Check(self.text, found, self._words(found), is_broken)

    def _words(self, found: float) -> str:
        """Word what was found so that it does not look like a limit it is not."""
        text = self.quantity.word(found)
        is_blurred = found != self.limit and text == self.quantity.word(self.limit)
        return self.quantity.word_exactly(found) if is_blurred else text


def parse(text: str) -> Rule:
    """Return the rule that ``text`` states.

    Raises ValueError with a sentence that names the rule, the part and what is allowed.
    """
    rule = _RULE.fullmatch(text.strip())
    if rule is None:
        raise ValueError(
            f"threshold {text!r}: should be metric, one of > >= < <=, and a limit, "
            "like lag.p99>250ms"
        )
    metric = rule["metric"].strip()
    quantity = quantity_of(metric)
    if quantity is None:
        raise ValueError(f"threshold {text!r}: no metric {metric!r}; known: {METRICS}")
    limit = _LIMIT.fullmatch(rule["limit"].strip())
    if limit is None or limit["unit"] not in quantity.units:
        raise ValueError(
            f"threshold {text!r}: limit {rule['limit'].strip()!r}: {metric} is "
            f"{quantity.name} and needs {quantity.units_in_words}"
        )
    number = float(limit["number"]) * quantity.units[limit["unit"]]
    return Rule(text.strip(), metric, rule["sign"], number, quantity)


def check(rules: Iterable[Rule], outcome: Outcome) -> tuple[Check, ...]:
    """Check what every run promises, then the rules given, each once."""
    standing = [*ALWAYS, ALWAYS_IF_AUDITED] if outcome.audit is not None else ALWAYS
    texts = [one for one in standing if measure(parse(one).metric, outcome) is not None]
    unique = {rule.text: rule for rule in (*map(parse, texts), *rules)}
    return tuple(rule.check(outcome) for rule in unique.values())


def quantity_of(metric: str) -> Quantity | None:
    """Return what a metric measures; None if there is no such metric."""
    head, _, figure = metric.rpartition(".")
    family, _, name = head.partition(".")
    if metric in COUNTS:
        return COUNT
    if figure in FIGURES and (
        head in DISTRIBUTIONS or (family in OF_KINDS and name in KINDS)
    ):
        return TIME
    if family in {"cpu", "machine"} and figure in {"max", "mean"}:
        is_known = name == "cpu" if family == "machine" else name
        return CPU if is_known else None
    if family == "memory" and figure == "max" and name:
        return MEMORY
    return None


def measure(metric: str, outcome: Outcome) -> float | None:
    """Return what a metric came to; None where nothing was measured."""
    if metric in COUNTS:
        return COUNTS[metric](outcome)
    head, _, figure = metric.rpartition(".")
    family, _, name = head.partition(".")
    if family == "machine":
        return _figure(outcome.seconds.machine_cpu, figure)
    if family in {"cpu", "memory"}:
        return _usage(outcome.processes, family, name, figure)
    if head in DISTRIBUTIONS:
        measured = DISTRIBUTIONS[head](outcome)
    else:
        kinds = (OF_KINDS[family](kind) for kind in outcome.kinds if kind.kind == name)
        measured = next(kinds, Summary(0))
    found: float | None = getattr(measured, figure)
    return found


def _add_up(counts: Iterable[float]) -> float | None:
    """Return the sum, None of no kinds of clients."""
    known = list(counts)
    return sum(known) if known else None


def _prompt(outcome: Outcome) -> list[KindOutcome]:
    return [kind for kind in outcome.kinds if kind.kind in PROMPT]


def _usage(
    processes: Sequence[ProcessUsage], family: str, name: str, figure: str
) -> float | None:
    """Return the worst of all processes of a name: one may have been restarted."""
    series = [
        process.cpu if family == "cpu" else process.memory_mib
        for process in processes
        if _plain(process.name) == _plain(name)
    ]
    found = [value for one in series if (value := _figure(one, figure)) is not None]
    return max(found, default=None)


def _plain(name: str) -> str:
    """Return a name as it may be typed without quotes: ``throttle-jvm``."""
    return name.strip().lower().replace(" ", "-")


def _figure(points: Points, figure: str) -> float | None:
    known = [point for point in points if point is not None]
    if not known:
        return None
    return max(known) if figure == "max" else sum(known) / len(known)
