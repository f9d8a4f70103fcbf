"""Shows books: what became of every trade, and whether it should have."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import typer

from deploy.arguments import format_moment
from deploy.show import print_table
from throttle.compare import Difference
from throttle.ledger import BatchEntry, Books, Ledger
from throttle.recheck import Report
from throttle.snapshot import Row


def ledger_object(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger for JSON."""
    problems = ledger.problems()
    return {
        "job": ledger.job,
        "since_ms": ledger.since.end_ms,
        "upto_ms": ledger.upto.end_ms,
        "checked_ms": ledger.checked_ms,
        "batches": ledger.batches,
        "windows": ledger.windows,
        "partitions": [
            {"partition": p, **books.to_object(), "log": counted}
            for p, books, counted in _partitions(ledger)
        ],
        "total": {**ledger.total.to_object(), "log": _sum(ledger.log)},
        "balanced": not problems,
        "problems": problems,
    }


def print_ledger(ledger: Ledger) -> None:
    """Print a ledger, and whether it balances."""
    since, upto = ledger.since.end_ms, ledger.upto.end_ms
    typer.echo(
        f"job {ledger.job}, from {format_moment(since)} up to the window "
        f"{format_moment(upto)}: {ledger.windows} windows in {ledger.batches} batches"
    )
    reasons = ledger.refusal_reasons
    # Most logs have no blanks.
    blanks = ["blanks#"] if ledger.total.blanks else []
    print_table(
        [
            *("partition", "read#", "published#", "superseded#", "stale#"),
            *(f"{reason}#" for reason in reasons),
            *(*blanks, "log#"),
        ],
        [
            (
                name,
                *_figures(books),
                *(books.refused.get(reason, 0) for reason in reasons),
                *(books.blanks for _ in blanks),
                "?" if counted is None else counted,
            )
            for name, books, counted in _lines(ledger)
        ],
    )
    for line in ledger.problems() or ["balanced"]:
        typer.echo(line)


def batch_object(batch: BatchEntry) -> dict[str, Any]:
    """Return a batch for JSON."""
    return {
        "offset": batch.offset,
        "batch": batch.batch,
        "term": batch.term,
        "windows": batch.windows,
        "start": batch.start.to_offset(),
        "end": batch.end.to_offset(),
        "partitions": [
            {"partition": p, **books.to_object()}
            for p, books in zip(batch.end.partitions, batch.partitions, strict=True)
        ],
        "total": batch.total.to_object(),
    }


def print_batches(batches: Sequence[BatchEntry]) -> None:
    """Print some batches, one a line."""
    print_table(
        [
            *("offset#", "up to the window", "windows#", "term#", "batch#"),
            *("read#", "published#", "superseded#", "stale#", "refused#"),
        ],
        [
            (
                *(batch.offset, format_moment(batch.end.end_ms), batch.windows),
                *(batch.term, batch.batch),
                *_figures(batch.total),
                sum(batch.total.refused.values()),
            )
            for batch in batches
        ],
    )


def report_object(job: str, report: Report) -> dict[str, Any]:
    """Return the outcome of a comparison for JSON."""
    return {
        "job": job,
        "right": report.is_right,
        "compared": report.compared,
        "equal": report.equal,
        "rows": report.rows,
        **{kind: report.counts[kind] for kind in ("missing", "extra", "wrong")},
        "undecided": report.undecided,
        "not_comparable": dict(report.not_comparable),
        "others": report.others,
        "problems": report.problems,
        "differences": [_difference_object(one) for one in report.differences],
    }


def print_report(job: str, report: Report) -> None:
    """Print the outcome of a comparison, in words and with the first differences."""
    typer.echo(
        f"job {job}: {report.compared} windows compared, {report.equal} equal; "
        f"{report.rows} rows published, {report.counts['missing']} missing, "
        f"{report.counts['extra']} extra, {report.counts['wrong']} wrong, "
        f"{report.undecided} undecided"
    )
    for reason, windows in report.not_comparable.items():
        typer.echo(f"{windows} windows not comparable: {reason}")
    if report.others:
        typer.echo(
            f"{report.others} windows in between are in no batch of this job: "
            "another job's"
        )
    for problem in report.problems:
        typer.echo(problem)
    if report.differences:
        print_table(
            ["", "offset#", "window", "isin", "expected", "published"],
            [
                (
                    *(one.kind, one.offset, format_moment(one.window), one.isin),
                    *(_row_cell(row) for row in (one.expected, one.published)),
                )
                for one in report.differences
            ],
        )
    typer.echo(_verdict(report))


def _verdict(report: Report) -> str:
    if not report.compared:
        return "no window could be compared"
    return "right" if report.is_right else "not right"


def _row_cell(row: Row | None) -> str:
    return "-" if row is None else f"{row.trades} trades: {row.body.decode()}"


def _row_object(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    version, body = row.version.decode(), row.body.decode()
    return {"version": version, "trades": row.trades, "body": body}


def _difference_object(one: Difference) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "offset": one.offset,
        "window": one.window,
        "isin": one.isin,
        "expected": _row_object(one.expected),
        "published": _row_object(one.published),
    }


def _figures(books: Books) -> tuple[int, int, int, int]:
    return books.read, books.published, books.superseded, books.stale


def _lines(ledger: Ledger) -> Iterator[tuple[str, Books, int | None]]:
    for partition, books, counted in _partitions(ledger):
        yield str(partition), books, counted
    yield "total", ledger.total, _sum(ledger.log)


def _partitions(ledger: Ledger) -> Iterator[tuple[int, Books, int | None]]:
    return zip(ledger.upto.partitions, ledger.partitions, ledger.log, strict=True)


def _sum(counted: Iterable[int | None]) -> int | None:
    known = list(counted)
    return None if None in known else sum(n for n in known if n is not None)
