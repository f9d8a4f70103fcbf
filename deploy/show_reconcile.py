"""Shows what was reconciled: a line per partition and job, and the differences."""

from typing import Any

import typer

from deploy.show import print_table
from ingest.log import LogInfo
from throttle.reconcile import Line, Reconciliation


def reconciliation_object(info: LogInfo, found: Reconciliation) -> dict[str, Any]:
    """Return a reconciliation for JSON."""
    return {
        "log": info.log_id,
        "right": found.is_right,
        "partitions": [
            {"partition": line.partition, "job": line.job, **_figures_object(line)}
            for line in found.lines
        ],
        "totals": {name: _figures_object(one) for name, one in found.totals().items()},
        "problems": found.problems,
        "notes": found.notes,
    }


def print_reconciliation(info: LogInfo, found: Reconciliation) -> None:
    """Print a reconciliation, and whether everything is where it should be."""
    typer.echo(f"log {info.log_id}, {info.partitions} partitions")
    totals = found.totals()
    has_receipts = any(line.acknowledged is not None for line in found.lines)
    has_blanks = any(line.books.blanks for line in found.lines)
    numbers = [
        *(["acknowledged"] if has_receipts else []),
        *("held", "trimmed", "read"),
        *(["blanks"] if has_blanks else []),
        *("published", "superseded", "stale", "refused", "waiting"),
    ]
    rows = [(str(line.partition), line.job or "-", line) for line in found.lines]
    rows += [(name, "", line) for name, line in totals.items()]
    print_table(
        ["partition", "job", *(f"{number}#" for number in numbers)],
        [
            (name, job, *(_cell(_figures(line)[number]) for number in numbers))
            for name, job, line in rows
        ],
    )
    for line in (*found.notes, *found.problems):
        typer.echo(line)
    typer.echo("every trade is accounted for" if found.is_right else "not right")


def _figures_object(line: Line) -> dict[str, Any]:
    return {**_figures(line), "refused": dict(line.books.refused)}


def _figures(line: Line) -> dict[str, int | None]:
    books = line.books
    return {
        "acknowledged": line.acknowledged,
        "held": line.held,
        "trimmed": line.trimmed,
        "read": books.read,
        "blanks": books.blanks,
        "published": books.published,
        "superseded": books.superseded,
        "stale": books.stale,
        "refused": sum(books.refused.values()),
        "waiting": line.waiting,
    }


def _cell(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"
