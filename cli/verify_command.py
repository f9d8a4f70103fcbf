"""The command that checks the chain of windows."""

from __future__ import annotations

from json import loads as parse_json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.commands.arguments import BadArgument, format_moment, parse_moment
from cli.commands.entry import fail, failing_on
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_json
from ingest.trade import LATEST_TIME_US
from throttle.settings import ThrottleSettings

if TYPE_CHECKING:
    from archive.contract.segment import Segment
    from archive.parquet.checked_file import CheckedFile
    from throttle.audit.chain_audit import Break, ChainAudit, ChainReport

MOST_TOLD = 100_000
"""So many windows of a gateway are checked at a time: two days of two seconds."""

_ISIN_END = len('{"isin":"KR7005930003')


@options_of(ThrottleSettings, "redis_url", chain_key_file="--key-file")
def verify(
    *,
    from_: Annotated[
        str | None,
        typer.Option("--from", help="Begin with the window that ends here: a time."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="End here; a window is named by its end.")
    ] = None,
    archive_dir: Annotated[
        Path | None,
        typer.Option(
            help="Check the archive in this folder. Those in PostgreSQL and in topics "
            "keep no links, and cannot be checked: `reconcile` counts them."
        ),
    ] = None,
    gateway: Annotated[
        str | None,
        typer.Option(help="Check what a gateway tells, such as http://127.0.0.1:8000."),
    ] = None,
    token: Annotated[
        str | None, typer.Option(envvar="TICKTHROTTLE_TOKEN", help="The gateway's.")
    ] = None,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Check that no published window is missing or altered.

    Of the window log, of an archive, or of what a gateway tells: rows = digest, sums of
    rows = totals of the books, and each window's hash goes on from the one before. In
    Redis the books of batches and of the log are compared, too. Ends with 1 on a break,
    and names it.
    """
    from throttle.audit.chain_audit import ChainAudit

    audit = ChainAudit(settings.chain_key())
    with failing_on(BadArgument, code=2):
        first_ms, last_ms = parse_moment("from", from_), parse_moment("to", to)
        if archive_dir is not None and gateway is not None:
            raise BadArgument("archive-dir, gateway: one of them at a time")
    bounds = first_ms or 0, last_ms or LATEST_TIME_US // 1_000
    problems: list[str] = []
    if archive_dir is not None:
        problems = _audit_archive(audit, archive_dir, bounds)
    elif gateway is not None:
        _audit_gateway(audit, gateway, token, bounds)
    else:
        problems = _audit_redis(audit, settings, bounds, is_open=last_ms is None)
    report = audit.report
    if not report.windows and not problems:
        fail("no window is there in this range")
    if json:
        print_json(report_object(report, problems))
    else:
        print_report(report, problems)
    raise typer.Exit(0 if report.is_right and not problems else 1)


def _audit_redis(
    audit: ChainAudit,
    settings: ThrottleSettings,
    bounds: tuple[int, int],
    *,
    is_open: bool,
) -> list[str]:
    from cli.commands.open_history import open_past

    with open_past(settings) as past:
        # First where it stands: what is published meanwhile is newer.
        newest = past.history.chain_end() if is_open else None
        for window in past.history.audited_windows(*bounds):
            audit.look_at(window)
        audit.end(newest)
        problems = []
        for job in past.history.jobs():
            audit.compare_books(past.history.batches(job))
            ledger = past.history.ledger(job)
            problems += [] if ledger is None else ledger.problems()
    return problems


def _audit_archive(audit: ChainAudit, root: Path, bounds: tuple[int, int]) -> list[str]:
    from archive.parquet.archive_reader import ArchiveReader
    from archive.parquet.segment_files import FILED_WINDOWS, ROWS_FILE, WINDOWS_FILE
    from archive.parquet.tables import ROWS
    from throttle.audit.chain_audit import AuditedWindow

    if not root.is_dir():
        fail(f"archive-dir {root}: is no folder")
    reader = ArchiveReader(root)
    with failing_on(OSError, ValueError):
        for snapshot in reader.windows(*bounds):
            audit.look_at(AuditedWindow.of(snapshot))
        for file in ((WINDOWS_FILE, FILED_WINDOWS), (ROWS_FILE, ROWS)):
            reader.read_each(*file, bounds, _read_whole)
        # What is missing between windows is a break; what was never kept is none.
        audit.report.notes += [gap.text for gap in reader.gaps(*bounds)]
        return reader.damage()


def _read_whole(_: Segment, file: CheckedFile) -> None:
    """Read every byte of a file, for the checksums of its pages."""
    for group in file.groups:
        file.read(groups=[group])


def _audit_gateway(
    audit: ChainAudit, url: str, token: str | None, bounds: tuple[int, int]
) -> None:
    from throttle.audit.chain_audit import AuditedWindow
    from tickthrottle_client.chain_v1 import Link, lines_of_items
    from tickthrottle_client.rest_client import RestClient, RestError

    told: dict[tuple[str, int], AuditedWindow] = {}
    with failing_on(RestError, ValueError, KeyError, TypeError):
        for text in RestClient(url, token=token).window_texts(*bounds):
            window = parse_json(text)
            links = [Link.parse(link) for link in window.get("chain", ())]
            place = window["epoch"], window["offset"], window["window"]
            # Series are not in the chain.
            lines = [
                n for n in lines_of_items(text) if n[_ISIN_END : _ISIN_END + 1] != b"@"
            ]
            audited = AuditedWindow.of_lines(place, lines, links[0] if links else None)
            told.setdefault(place[:2], audited)
            if len(told) > MOST_TOLD:
                fail(
                    f"from, to: more than {MOST_TOLD:,} windows are in this range: "
                    "take a shorter one",
                    code=2,
                )
    for window in reversed(told.values()):
        audit.look_at(window)


def print_report(report: ChainReport, problems: list[str]) -> None:
    """Print what an audit found, the verdict last."""
    trades, volume, value = report.totals
    typer.echo(
        f"{report.windows:,} windows, {trades:,} trades, volume {volume}, value {value}"
    )
    if report.batches:
        typer.echo(f"{report.batches:,} batches whose books agree or are named below")
    if report.unlinked:
        typer.echo(f"{report.unlinked:,} windows of a version without a chain")
    for note in (*report.notes, *problems):
        typer.echo(note)
    for one in report.breaks:
        typer.echo(_sentence(one))
    if report.broken > len(report.breaks):
        typer.echo(f"and {report.broken - len(report.breaks):,} more")
    if report.broken or problems:
        typer.echo("broken")
    elif report.windows == report.unlinked:
        typer.echo("no window has a link")
    elif report.last is not None:
        typer.echo(f"holds up to {report.last.text}")


def _sentence(one: Break) -> str:
    end = "" if one.window is None else f", the window {format_moment(one.window)}"
    return f"{one.kind}: offset {one.offset} of epoch {one.epoch}{end}: {one.text}"


def report_object(report: ChainReport, problems: list[str]) -> dict[str, Any]:
    return {
        "windows": report.windows,
        "unlinked": report.unlinked,
        "batches": report.batches,
        **report.totals._asdict(),
        "first": report.first and report.first._asdict(),
        "last": report.last and report.last._asdict(),
        "broken": report.broken,
        "breaks": [one._asdict() for one in report.breaks],
        "notes": report.notes,
        "problems": problems,
        "holds": report.is_right and not problems,
    }
