"""A result as lines for a terminal: the verdict, what broke, the figures. Pure."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from loadtest.figures import words
from loadtest.figures.percentiles import mean_of
from loadtest.report.verdict import LOADS, detail, headline
from loadtest.results import (
    Capacity,
    Check,
    KindOutcome,
    Outcome,
    Result,
    Summary,
)

T = TypeVar("T")


def summary(result: Result) -> Group:
    """Return what is printed at the end of a run."""
    return Group(*_parts(result))


def _parts(result: Result) -> Iterator[RenderableType]:
    outcome = result.outcome
    colour = "green" if result.is_passed else "red"
    yield Text(headline(result), style=f"bold {colour}")
    yield Text(detail(result))
    if outcome.checks:
        broken_first = sorted(outcome.checks, key=lambda check: not check.is_broken)
        yield _thresholds(broken_first)
    for text in outcome.faults:
        yield Text(f"fault: {text}", style="red")
    if result.capacity is not None:
        yield _capacity(result.capacity)
    if result.comparison:
        yield _comparison(result.comparison)
    yield _distributions(outcome)
    if outcome.kinds:
        yield _kinds(outcome.kinds)
    yield from _books(outcome)


def _thresholds(checks: Sequence[Check]) -> Table:
    return _table(
        {
            "It fails if": lambda check: check.rule,
            "found": lambda check: check.text,
            "": lambda check: _held(not check.is_broken, "broken"),
        },
        checks,
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
        {
            "": lambda row: row[0],
            "mean": lambda row: words.duration(row[1].mean),
            "p50": lambda row: words.duration(row[1].p50),
            "p90": lambda row: words.duration(row[1].p90),
            "p99": lambda row: words.duration(row[1].p99),
            "longest": lambda row: words.duration(row[1].max),
            "samples": lambda row: words.count(row[1].count),
        },
        rows,
    )


def _kinds(kinds: Sequence[KindOutcome]) -> Table:
    return _table(
        {
            "Kind": lambda kind: kind.kind,
            "clients": lambda kind: words.count(kind.clients),
            "lag p99": lambda kind: words.duration(kind.lag_ms.p99),
            "staleness": lambda kind: words.duration(kind.staleness_ms.mean),
            "merged": lambda kind: words.count(kind.merged_windows),
            "unseen": lambda kind: words.count(kind.unseen),
            "closed": lambda kind: words.count(sum(kind.closes.values())),
            "faults": lambda kind: Text(
                words.count(kind.faults), style="bold red" if kind.faults else ""
            ),
        },
        kinds,
    )


def per_row(outcome: Outcome) -> float | None:
    """Return how many trades were read for each row that was published."""
    books = outcome.books
    return books.read / books.published if books.published else None


def per_item(outcome: Outcome) -> float | None:
    """Return how many trades an item of an update stands for."""
    items = sum(kind.items for kind in outcome.kinds)
    return sum(kind.trades for kind in outcome.kinds) / items if items else None


def _books(outcome: Outcome) -> Iterator[Text]:
    books = outcome.books
    balance = words.plural(len(books.problems), "problem")
    not_last = f"{words.count(books.not_last)} not last + " if books.not_last else ""
    yield Text(
        f"Ledger: {words.count(books.read)} read = {words.count(books.published)} "
        f"published + {words.count(books.superseded)} superseded + "
        f"{words.count(books.stale)} stale + {not_last}"
        f"{words.count(sum(books.refused.values()))} refused: "
        f"{balance if books.problems else 'balanced'}",
        style="red" if books.problems else "",
    )
    for problem in books.problems:
        yield Text(f"  {problem}", style="red")
    audit = outcome.audit
    if audit is not None:
        total = audit.difference_count
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
    return _table(
        {
            LOADS[found.raised].capitalize(): lambda step: words.count(step.load),
            "": lambda step: _held(step.is_good, "broke"),
            "lag p50": lambda step: words.duration(step.outcome.lag_ms.p50),
            "p99": lambda step: words.duration(step.outcome.lag_ms.p99),
            "publish p99": lambda step: words.duration(step.outcome.publish_ms.p99),
            "fan-out p99": lambda step: words.duration(step.outcome.fanout_ms.p99),
            "behind": lambda step: words.duration(step.outcome.feeding.behind_ms.p99),
        },
        found.steps,
    )


def _comparison(ways: Sequence[Outcome]) -> Table:
    """Return each way of serving; all clients of one are of one kind."""

    def gateways(way: Outcome) -> float:
        cpu = [one.cpu for one in way.processes if one.name == "gateway"]
        return sum(mean_of(points) or 0.0 for points in cpu)

    def each(way: Outcome) -> float:
        return way.kinds[0].bytes / _seconds(way) / max(way.kinds[0].clients, 1)

    return _table(
        {
            "Way": lambda way: way.name,
            "clients": lambda way: words.count(way.kinds[0].clients),
            "staleness": lambda way: words.duration(way.kinds[0].staleness_ms.mean),
            "p99": lambda way: words.duration(way.kinds[0].staleness_ms.p99),
            "bytes/s each": lambda way: words.size(each(way)),
            "requests/s": lambda way: words.rate(way.kinds[0].requests / _seconds(way)),
            "connects/s": lambda way: words.rate(
                way.kinds[0].connections / _seconds(way)
            ),
            "CPU": lambda way: words.cores(gateways(way)),
        },
        ways,
    )


def _seconds(way: Outcome) -> float:
    return (way.to_ms - way.from_ms) / 1_000


def _held(is_good: bool, otherwise: str) -> Text:
    return Text("held", "green") if is_good else Text(otherwise, "bold red")


def _table(
    columns: Mapping[str, Callable[[T], str | Text]], rows: Iterable[T]
) -> Table:
    """Return a table of columns and their cells: the first left, figures right."""
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, header_style="bold")
    for number, head in enumerate(columns):
        justify: JustifyMethod = "right" if number else "left"
        # A figure cut short would be another figure.
        table.add_column(
            Text(head), justify=justify, overflow="fold", no_wrap=number == 0
        )
    for row in rows:
        cells = [cell(row) for cell in columns.values()]
        table.add_row(
            *(Text(cell) if isinstance(cell, str) else cell for cell in cells)
        )
    return table
