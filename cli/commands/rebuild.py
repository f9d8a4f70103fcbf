"""The command that computes past windows again and compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.commands.arguments import (
    BadArgument,
    FromPlace,
    Place,
    format_moment,
    parse_moment_or_place,
)
from cli.commands.entry import fail
from cli.commands.setting_options import WITH_JOB, AsJson
from cli.commands.tables import print_json, print_table
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from throttle.audit.compare import Difference
    from throttle.audit.recompute import WindowRule
    from throttle.audit.verify import VerificationReport
    from throttle.contract.ledger import BatchEntry
    from throttle.contract.snapshot import Row


@WITH_JOB
def rebuild(
    *,
    from_: FromPlace = None,
    to: Annotated[
        str | None,
        typer.Option(help="End here: a time, or the position of a trade."),
    ] = None,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Compute past windows again from the trade log, and compare.

    In plain Python, trade by trade, without Spark. Windows whose trades are no longer
    in the log are counted as not comparable. What they say of markets and sectors is
    computed with the instrument table of their time. Ends with 1 on any difference.
    """
    from cli.commands.open_history import open_past
    from ingest.instrument_table.instrument_store import TableAway
    from ingest.instrument_table.open_instrument_store import open_instrument_store
    from throttle.audit.published import InstrumentTables
    from throttle.audit.recompute import WindowRule
    from throttle.audit.verify import END_OF_TIME_MS, Verification
    from throttle.window.decoder import find_decoder
    from throttle.window.series_rows import find_series

    with open_past(settings) as past:
        first = parse_moment_or_place("from", from_)
        last = parse_moment_or_place("to", to)
        name, history = settings.job, past.history
        source, window_ms = past.log_read_by(name), history.window_ms()
        if window_ms is None:
            fail(f"job {name}: nothing has been published yet")
        decoder = find_decoder(settings.decoder, settings.schema_registry_url)
        ledger = history.ledger(name)
        rule = WindowRule(
            window_ms,
            settings.max_ahead_ms,
            decoder,
            settings.max_entry_bytes,
            find_series(settings.series, settings.sessions),
            None if ledger is None else ledger.since,
        )
        batches, when = history.batches(name), source.append_ms
        first_ms = window_end("from", first, batches, rule, when) or 0
        last_ms = window_end("to", last, batches, rule, when) or END_OF_TIME_MS
        before = history.versions_before()
        verification = Verification(
            batches,
            source,
            rule,
            first_ms,
            last_ms,
            table_at=InstrumentTables(open_instrument_store(settings)).at,
        )
        try:
            report = verification.run(history.windows(), before, history.oldest_offset)
        except TableAway as error:
            fail(f"the instrument table is away: {error}")
    if json:
        print_json(report_object(name, report))
    else:
        print_report(name, report)
    raise typer.Exit(0 if report.is_right else 1)


def window_end(
    option: str,
    given: int | Place | None,
    batches: Sequence[BatchEntry],
    rule: WindowRule,
    append_ms: Callable[[int, int], int | None],
) -> int | None:
    """Return the window a moment or a trade stands for, by its end; None for none.

    ``append_ms`` tells when the trade was appended (``LogEntries``). Raises BadArgument
    for a trade that is in no recorded batch, or of which that is not known.
    """
    if not isinstance(given, Place):
        return given
    from throttle.audit.recompute import holder

    batch = holder(batches, *given)
    if batch is None:
        raise BadArgument(
            f"{option} {given}: in no batch that is still recorded, "
            "or not read from the log yet"
        )
    appended_ms = append_ms(*given)
    if appended_ms is None:
        raise BadArgument(f"{option} {given}: the log has no such entry any more")
    return rule.window_of(appended_ms, batch.start.end_ms, batch.end.end_ms)


def report_object(job: str, report: VerificationReport) -> dict[str, Any]:
    """Return the outcome of a comparison for JSON."""
    names = ("compared", "equal", "rows", "undecided", "others", "groups", "problems")
    return {
        "job": job,
        "right": report.is_right,
        **{name: getattr(report, name) for name in names},
        **{kind: report.counts[kind] for kind in ("missing", "extra", "wrong")},
        "not_comparable": dict(report.not_comparable),
        "gone_instrument_tables": {str(v): n for v, n in report.gone_tables.items()},
        "differences": [_difference_object(one) for one in report.differences],
    }


def print_report(job: str, report: VerificationReport) -> None:
    """Print the outcome of a comparison, in words and with the first differences."""
    typer.echo(
        f"job {job}: {report.compared} windows compared, {report.equal} equal; "
        f"{report.rows} rows published, {report.counts['missing']} missing, "
        f"{report.counts['extra']} extra, {report.counts['wrong']} wrong, "
        f"{report.undecided} undecided"
    )
    for reason, windows in report.not_comparable.items():
        typer.echo(f"{windows} windows not comparable: {reason}")
    if report.groups:
        typer.echo(f"{report.groups} groups of markets and sectors compared")
    for version, windows in report.gone_tables.items():
        typer.echo(
            f"{windows} windows were joined with the instrument table {version}, which "
            "is gone: their groups were not compared"
        )
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


def _verdict(report: VerificationReport) -> str:
    if not report.compared:
        return "no window could be compared"
    return "right" if report.is_right else "not right"


def _row_cell(row: Row | None) -> str:
    return "-" if row is None else f"sums {row.sums.decode()}: {row.body.decode()}"


def _row_object(row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    texts = {name: getattr(row, name).decode() for name in ("version", "sums", "body")}
    return {**texts, "trades": row.trades}


def _difference_object(one: Difference) -> dict[str, Any]:
    of_row = {name: getattr(one, name) for name in ("kind", "offset", "window", "isin")}
    rows = {name: _row_object(getattr(one, name)) for name in ("expected", "published")}
    return of_row | rows
