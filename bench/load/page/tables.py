"""What clients of each kind saw, the audit, and ways of serving compared. Pure."""

from bench.load import words
from bench.load.page.markup import Markup, element, join, level, meter, panel, table
from bench.load.results import Audit, KindOutcome, Outcome, Result

NUMBER = "number"
KINDS = {
    "watch": "a watch-list, read as fast as it comes",
    "market": "the whole market, read as fast as it comes",
    "sse": "a watch-list over server-sent events",
    "slow": "pauses reading again and again",
    "stalled": "stops reading after the first snapshot",
    "reconnecting": "is cut off again and again, and resumes",
    "polling": "asks over HTTP at fixed times",
}


def kinds(outcome: Outcome) -> Markup:
    """Return what each kind of client saw, and what it took."""
    if not outcome.kinds:
        return Markup("")
    saw = ["Clients", "Lag p50", "p99", "longest", "Staleness mean", "p99"]
    saw += ["Windows merged", "Never came", "Faults"]
    took = [
        "Frames",
        "Prices",
        "Bytes",
        "Connections",
        "Resumed",
        "Requests",
        "Refused",
    ]
    return panel(
        "kinds",
        "By kind of client",
        "Lag and staleness above are of those that read promptly: watch, market and "
        "sse. The others are slow, cut off or patient on purpose.",
        table(
            "What clients saw, by kind",
            [("Kind", ""), *((head, NUMBER) for head in saw)],
            [_saw(kind) for kind in outcome.kinds],
        ),
        table(
            "What clients took, by kind",
            [("Kind", ""), *((head, NUMBER) for head in took), ("Server closed", "")],
            [_took(kind) for kind in outcome.kinds],
        ),
    )


def _saw(kind: KindOutcome) -> list[str]:
    what = element("span", KINDS.get(kind.kind, ""), class_="soft what")
    faults = words.count(kind.faults)
    return [
        join([element("b", kind.kind), what]),
        words.count(kind.clients),
        words.duration(kind.lag_ms.p50),
        words.duration(kind.lag_ms.p99),
        words.duration(kind.lag_ms.max),
        words.duration(kind.staleness_ms.mean),
        words.duration(kind.staleness_ms.p99),
        words.count(kind.merged_windows),
        words.count(kind.unseen),
        element("b", faults, class_="bad") if kind.faults else faults,
    ]


def _took(kind: KindOutcome) -> list[str]:
    closes = ", ".join(
        f"{code}: {words.count(count)}" for code, count in sorted(kind.closes.items())
    )
    return [
        element("b", kind.kind),
        words.count(kind.frames),
        words.count(kind.items),
        words.size(kind.bytes),
        words.count(kind.connections),
        words.count(kind.resumed),
        words.count(kind.requests),
        words.count(kind.refused),
        closes or "none",
    ]


def audit(found: Audit | None) -> Markup:
    """Return what a second reading of the log came to."""
    about = (
        "After the run the trade log was read again by plain means, every trade judged "
        "by the documented rules, and each window compared with what was published."
    )
    if found is None:
        return panel(
            "audit", "Audit", "The trade log was not read again after this run."
        )
    total = max(found.difference_count, len(found.differences))
    compared = (
        f"{words.plural(found.trades, 'trade')} of "
        f"{words.plural(found.issues, 'issue')} in "
        f"{words.plural(found.windows, 'window')} compared"
    )
    word = words.plural(total, "difference") if total else "no difference"
    listed = [element("li", one) for one in found.differences]
    if total > len(found.differences):
        listed.append(element("li", f"and {words.count(total - len(listed))} more"))
    return panel(
        "audit",
        "Audit",
        about,
        element("p", f"{compared}: ", level(not total, word), class_="says"),
        element("ul", *listed, class_="wrong") if listed else "",
    )


def comparison(result: Result) -> Markup:
    """Return ways of serving the same audience, side by side."""
    ways = result.comparison
    if not ways:
        return Markup("")
    heads = ["Clients", "Staleness mean", "p99", "Bytes per client and s", "Requests/s"]
    heads += ["New connections/s", "Gateway CPU"]
    stale = max(one.staleness_ms.mean or 0.0 for one in ways)
    size = max(one.bytes_per_client_s for one in ways)
    cpu = max(one.gateway_cpu for one in ways)
    return panel(
        "comparison",
        "The same audience, served in different ways",
        "The same trades and watch-lists each time. A poll counts from the moment it "
        "was due. CPU is of one core.",
        table(
            "Ways of serving",
            [("Way", ""), *((head, NUMBER) for head in heads)],
            [
                [
                    element("b", one.way),
                    words.count(one.clients),
                    join(
                        [
                            words.duration(one.staleness_ms.mean),
                            meter(one.staleness_ms.mean or 0.0, stale),
                        ]
                    ),
                    words.duration(one.staleness_ms.p99),
                    join(
                        [
                            words.size(one.bytes_per_client_s),
                            meter(one.bytes_per_client_s, size),
                        ]
                    ),
                    words.rate(one.requests_per_s),
                    words.rate(one.connections_per_s),
                    join([words.cores(one.gateway_cpu), meter(one.gateway_cpu, cpu)]),
                ]
                for one in ways
            ],
        ),
    )
