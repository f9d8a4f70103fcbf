"""A result as lines for a terminal: the verdict, what broke, the figures. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from bench.load import words
from bench.load.balance import balance, per_item, per_row
from bench.load.results import Capacity, Outcome, Result, Served, Summary
from bench.load.verdict import LOADS, Verdict, judge


def summary(result: Result) -> Group:
    """Return what is printed at the end of a run."""
    found = judge(result)
    return Group(*_parts(result, found))


def _parts(result: Result, found: Verdict) -> Iterator[RenderableType]:
    outcome = result.outcome
    colour = "green" if found.is_good else "red"
    yield Text(found.headline, style=f"bold {colour}")
    yield Text(found.detail)
    if found.checks:
        yield _thresholds(found)
    for text in outcome.faults:
        yield Text(f"fault: {text}", style="red")
    if result.capacity is not None:
        yield _capacity(result.capacity)
    if result.comparison:
        yield _comparison(result.comparison)
    yield _distributions(outcome)
    if outcome.kinds:
        yield _kinds(outcome)
    yield from _books(outcome)


def _thresholds(found: Verdict) -> Table:
    return _table(
        ["It fails if", "found", ""],
        (
            [
                Text(check.rule),
                Text(check.text),
                Text("broken", style="bold red")
                if check.is_broken
                else Text("held", style="green"),
            ]
            for check in found.checks
        ),
    )


def _distributions(outcome: Outcome) -> Table:
    rows: list[tuple[str, Summary]] = [
        ("lag", outcome.lag_ms),
        ("  to publish", outcome.publish_ms),
        ("  to clients", outcome.fanout_ms),
        ("staleness", outcome.staleness_ms),
        ("feed behind", outcome.feeding.behind_ms),
    ]
    return _table(
        ["", "mean", "p50", "p90", "p99", "longest", "samples"],
        (
            [
                Text(name),
                *(
                    Text(words.duration(ms))
                    for ms in (one.mean, one.p50, one.p90, one.p99, one.max)
                ),
                Text(words.count(one.count)),
            ]
            for name, one in rows
        ),
    )


def _kinds(outcome: Outcome) -> Table:
    heads = ["Kind", "clients", "lag p99", "staleness", "merged", "unseen", "closed"]
    return _table(
        [*heads, "faults"],
        (
            [
                Text(one.kind),
                Text(words.count(one.clients)),
                Text(words.duration(one.lag_ms.p99)),
                Text(words.duration(one.staleness_ms.mean)),
                Text(words.count(one.merged_windows)),
                Text(words.count(one.unseen)),
                Text(words.count(sum(one.closes.values()))),
                Text(words.count(one.faults), style="bold red" if one.faults else ""),
            ]
            for one in outcome.kinds
        ),
    )


def _books(outcome: Outcome) -> Iterator[Text]:
    books = outcome.books
    is_balanced, found = balance(books)
    yield Text(
        f"Ledger: {words.count(books.read)} read = {words.count(books.published)} "
        f"published + {words.count(books.superseded)} superseded + "
        f"{words.count(books.stale)} stale + "
        f"{words.count(sum(books.refused.values()))} refused: {found}",
        style="" if is_balanced else "red",
    )
    for problem in books.problems:
        yield Text(f"  {problem}", style="red")
    audit = outcome.audit
    if audit is not None:
        total = max(audit.difference_count, len(audit.differences))
        yield Text(
            f"Audit: {words.plural(audit.trades, 'trade')} read again, "
            f"{words.plural(audit.windows, 'window')} compared: "
            f"{words.plural(total, 'difference')}",
            style="red" if total else "",
        )
        for difference in audit.differences:
            yield Text(f"  {difference}", style="red")
    yield Text(
        f"Reduction: {words.ratio(per_row(outcome))} trades in for each row published; "
        f"a price sent stands for {words.ratio(per_item(outcome))} trades"
    )


def _capacity(found: Capacity) -> Table:
    heads = [LOADS[found.raised].capitalize(), "", "lag p50", "p99", "publish p99"]
    heads += ["fan-out p99", "behind"]
    return _table(
        heads,
        (
            [
                Text(words.count(step.load)),
                Text("held", style="green")
                if step.is_good
                else Text("broke", style="bold red"),
                Text(words.duration(step.lag_p50_ms)),
                Text(words.duration(step.lag_p99_ms)),
                Text(words.duration(step.publish_p99_ms)),
                Text(words.duration(step.fanout_p99_ms)),
                Text(words.duration(step.behind_ms)),
            ]
            for step in found.steps
        ),
    )


def _comparison(ways: Sequence[Served]) -> Table:
    heads = ["Way", "clients", "staleness", "p99", "bytes/s each", "requests/s"]
    heads += ["connects/s", "CPU"]
    return _table(
        heads,
        (
            [
                Text(one.way),
                Text(words.count(one.clients)),
                Text(words.duration(one.staleness_ms.mean)),
                Text(words.duration(one.staleness_ms.p99)),
                Text(words.size(one.bytes_per_client_s)),
                Text(words.rate(one.requests_per_s)),
                Text(words.rate(one.connections_per_s)),
                Text(words.cores(one.gateway_cpu)),
            ]
            for one in ways
        ),
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[Text]]) -> Table:
    """Return a table, its first column left and figures right."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, header_style="bold")
    for number, head in enumerate(heads):
        justify: JustifyMethod = "right" if number else "left"
        # A figure cut short would be another figure.
        table.add_column(
            Text(head), justify=justify, overflow="fold", no_wrap=number == 0
        )
    for row in rows:
        table.add_row(*row)
    return table
