"""The top of the page: did it hold, against what, and the key figures. Pure."""

from collections.abc import Iterator, Sequence

from bench.load import words
from bench.load.balance import per_item, per_row
from bench.load.page.markup import Markup, element, level, panel, prose, table
from bench.load.page.measured import mean
from bench.load.results import PROMPT, Check, Outcome, Result
from bench.load.verdict import judge

MEANINGS = {
    "faults>0": "every client checks: no value goes back, no gap, no key twice, the "
    "final prices are right",
    "clients.unseen>0": "every window with news reached every prompt client",
    "ledger.problems>0": "read = published + superseded + stale + refused",
    "audit.differences>0": "the windows are what the trade log says they should be",
    "lag": "from a window's end until a client had it",
    "publish": "from a window's end until it was published",
    "fanout": "from a window's publishing until a client had it",
    "staleness": "for how long a newer trade than the one shown was in the log",
    "feed": "from a trade's due time until the log had it",
    "cpu": "of one core",
    "machine": "all processes of the machine, of one core",
}


def meaning(rule: str) -> str:
    """Return what a rule is about; nothing where its metric says it all."""
    return MEANINGS.get(rule.partition(".")[0], "")


def verdict(result: Result) -> Markup:
    """Return the answer, with each threshold beneath it."""
    found = judge(result)
    return element(
        "section",
        level(found.is_good),
        element(
            "div",
            element("h2", found.headline, id="verdict"),
            element("p", prose(found.detail), class_="detail"),
            thresholds(found.checks),
            class_="says",
        ),
        class_="verdict panel",
        data_level="ok" if found.is_good else "bad",
        aria_labelledby="verdict",
    )


def thresholds(checks: Sequence[Check]) -> Markup:
    """Return the table of thresholds; a rule says when the run fails."""
    if not checks:
        return Markup("")
    return table(
        "Thresholds",
        [
            ("It fails if", "code"),
            ("Found", "number"),
            ("Verdict", ""),
            ("", "soft why"),
        ],
        [
            [
                check.rule,
                check.text,
                level(not check.is_broken, "broken" if check.is_broken else "held"),
                MEANINGS.get(check.rule) or meaning(check.rule),
            ]
            for check in checks
        ],
    )


def faults(outcome: Outcome) -> Markup:
    """Return the broken promises in words; nothing if there are none."""
    if not outcome.faults:
        return Markup("")
    shown = len(outcome.faults)
    total = max(shown, sum(kind.faults for kind in outcome.kinds))
    return panel(
        "faults",
        "Broken promises",
        f"{words.plural(total, 'fault')} found by the checking clients and the run; "
        + (f"the first {shown}:" if total > shown else "all of them:"),
        element(
            "ul", *(element("li", text) for text in outcome.faults), class_="wrong"
        ),
    )


def key_figures(outcome: Outcome) -> Markup:
    """Return the figures that most readers look for, each with its neighbours."""
    return element(
        "section",
        *(
            element(
                "div",
                element("h3", title),
                element("p", element("b", big), Markup(" "), element("span", unit)),
                element("p", prose(note), class_="soft"),
                class_="figure panel",
            )
            for title, big, unit, note in _figures(outcome)
        ),
        class_="figures",
        aria_label="Key figures",
    )


def _figures(outcome: Outcome) -> Iterator[tuple[str, str, str, str]]:
    lag, stale, feed = outcome.lag_ms, outcome.staleness_ms, outcome.feeding
    seconds = outcome.seconds
    yield (
        "Lag",
        words.duration(lag.p99),
        "p99",
        f"window's end to client; half within {words.duration(lag.p50)}, longest "
        f"{words.duration(lag.max)}",
    )
    yield (
        "Staleness",
        words.duration(stale.mean),
        "mean",
        f"a newer trade waits for its window; p99 {words.duration(stale.p99)}",
    )
    is_all = feed.acknowledged >= feed.due
    of = "in all" if is_all else f"of {words.count(feed.due)} that fell due"
    taken = f"{words.count(feed.acknowledged)} {of}"
    yield (
        "Trades in",
        words.rate(feed.acknowledged / feed.seconds if feed.seconds else None),
        "a second",
        f"{taken}; p99 {words.duration(feed.behind_ms.p99)} from due to acknowledged",
    )
    yield (
        "Clients",
        words.count(
            max((one for one in seconds.clients if one is not None), default=None)
        ),
        "at once",
        f"{words.rate(mean(outcome, seconds.at_ms, seconds.frame_rate))} frames/s, "
        f"{words.size(mean(outcome, seconds.at_ms, seconds.byte_rate))}/s in all",
    )
    yield (
        "Reduction",
        f"{words.ratio(per_row(outcome))}\N{MULTIPLICATION SIGN}",
        "fewer rows",
        "trades read for each row published; a price sent stands for "
        f"{words.ratio(per_item(outcome))} trades",
    )
    prompt = [kind for kind in outcome.kinds if kind.kind in PROMPT]
    merged = words.plural(sum(kind.merged_windows for kind in prompt), "window")
    unseen = words.count(sum(kind.unseen for kind in prompt))
    yield (
        "Broken promises",
        words.count(max(len(outcome.faults), sum(one.faults for one in outcome.kinds))),
        "faults",
        f"for prompt clients {merged} came merged, {unseen} not at all",
    )
