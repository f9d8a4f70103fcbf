"""The command that compares what feeds, log and ledgers have counted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, astuple
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from archive.settings import ArchiveSettings
from cli.commands.arguments import BadArgument
from cli.commands.entry import fail, read_settings
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_json, print_table
from throttle.settings import ThrottleSettings
from tickthrottle_client.log_v1 import LogError

if TYPE_CHECKING:
    from archive.account import (
        Account,
        BarAccount,
        DayAndPartition,
        PartitionCounts,
        StoredDay,
        WindowAccount,
    )
    from archive.storing.archive_sink import ArchiveCounts
    from cli.commands.open_history import Past
    from ingest.feed.receipt import Receipt
    from ingest.tradelog.contract import LogInfo
    from throttle.audit.log_entries import LogEntries
    from throttle.audit.reconcile import PartitionReading, Reconciliation
    from throttle.contract.ledger import Ledger

_LOOKS = 5
_END_OF_TIME_MS = 2**53

_DECODED = {"extra", "skipped"}
"""Figures that a log has with a decoder only."""


@options_of(ThrottleSettings, "redis_url", "kafka_servers")
def reconcile(
    *,
    acknowledged: Annotated[
        list[Path] | None,
        typer.Option(
            help="The receipt of a feed: the file it kept with --report. May be "
            "given several times, for several feeds."
        ),
    ] = None,
    others: Annotated[
        bool,
        typer.Option("--others", help="Allow for producers that have left no receipt."),
    ] = False,
    job: Annotated[
        str | None,
        typer.Option(help="Only this job. [default: all that have read this log]"),
    ] = None,
    archive_dir: Annotated[
        Path | None,
        typer.Option(help="Go on to the archive in this folder: is every window kept?"),
    ] = None,
    postgres: Annotated[
        str | None, typer.Option(help="Go on to the archive in this database.")
    ] = None,
    topics: Annotated[
        str | None,
        typer.Option(help="Go on to the archive in the topics of this prefix."),
    ] = None,
    day: Annotated[
        str | None,
        typer.Option(help="Of the archive only this day (UTC), such as 2026-03-20."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Of the archive only this day (UTC) and later ones."),
    ] = None,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Compare what was acknowledged, what the log holds, and what became of it.

    Counted anew, by reading the log, per partition: acknowledged = held, held +
    trimmed = read, read = published + superseded + stale + not_last + refused. With an
    archive, windows, rows, bars and statuses of the logs = those stored. Ends with 1 on
    any difference. Trades that wait to be read are no difference.
    """
    from archive.archive_process import open_counts
    from cli.commands.open_history import open_past

    bounds_ms = _bounds_ms(day, since)
    with open_past(settings) as past:
        if job is None:
            source = past.log()
            jobs = past.jobs_of(source.info)
        else:
            source, jobs = past.log_read_by(job), [job]
        receipts = _receipts(acknowledged, source.info) if acknowledged else None
        is_whole = job is None
        found = _look(past, source, jobs, receipts, is_whole, others)
        kept, bars = None, None
        if archive_dir is not None or postgres is not None or topics is not None:
            counts = open_counts(
                read_settings(
                    ArchiveSettings,
                    archive_dir=archive_dir,
                    postgres_url=postgres or "",
                    archive_topics=topics or "",
                    kafka_servers=settings.kafka_servers,
                    kafka_config=settings.kafka_config,
                    schema_registry_url=settings.schema_registry_url,
                )
            )
            try:
                bars = _reconcile_bars(past, counts, bounds_ms)
                kept = _reconcile_archive(past, jobs, counts, bounds_ms)
            except (OSError, LogError) as error:
                fail(f"archive: {error}")
    is_right = found.is_right and all(a is None or a.is_right for a in (kept, bars))
    if json:
        print_json(reconciliation_object(source.info, found, kept, bars))
    else:
        print_reconciliation(source.info, found)
        if kept is not None and bars is not None:
            print_account(kept)
            # Nothing where there has never been any.
            if bars.days or bars.problems:
                print_bar_account(bars)
    raise typer.Exit(0 if is_right else 1)


def _bounds_ms(day: str | None, since: str | None) -> tuple[int, int]:
    """Return the ends of the first and the last window of the archive that count."""
    from archive.contract.segment import span_of

    if day is not None and since is not None:
        fail("day, since: only one of them", code=2)
    try:
        if since is not None:
            return span_of(date.fromisoformat(since))[0], _END_OF_TIME_MS
        if day is not None:
            return span_of(date.fromisoformat(day))
    except ValueError:
        name = "since" if since is not None else "day"
        fail(f"{name} {since or day}: must be a day such as 2026-03-20", code=2)
    return 0, _END_OF_TIME_MS


def _reconcile_archive(
    past: Past, jobs: list[str], counts: ArchiveCounts, bounds_ms: tuple[int, int]
) -> WindowAccount:
    """Compare the window log, and the batches that are recorded, with an archive."""
    from archive.account import (
        account_for,
        batch_differences,
        days_of,
        partition_counts,
        rows_of_log,
        stored_day,
        unstored_statuses,
    )
    from archive.contract.segment import Coverage, span_of
    from ingest.series import parse_series

    first_ms, last_ms = bounds_ms
    partitions: dict[DayAndPartition, PartitionCounts] = {}

    def stored() -> Iterator[StoredDay]:
        for day in days_of(segments):
            of_day = span_of(day)
            if first_ms <= of_day[1] and of_day[0] <= last_ms:
                windows, rows = counts.windows(*of_day), counts.rows(*of_day)
                kept = stored_day(windows, rows)
                partitions.update(partition_counts(rows, kept))
                yield kept

    # The log first: of a window that is stored meanwhile nothing is missing.
    log = rows_of_log(past.history.windows())
    log = {p: w for p, w in log.items() if first_ms <= w.window <= last_ms}
    statuses = past.statuses()
    counts.damage()
    segments = counts.segments()
    gaps = counts.gaps("windows", first_ms, last_ms)
    account = account_for(log, stored(), gaps)
    account.partitions = partitions
    for job in jobs:
        batches = past.history.batches(job)
        held = log, account.stored, len(parse_series(past.settings.series))
        account.problems += batch_differences(job, batches, *held)
    if "statuses" in counts.keeps:
        covered = Coverage(counts.segments("statuses"))
        account.problems += unstored_statuses(statuses, covered)
        account.add_gaps(counts.gaps("statuses", first_ms, last_ms))
    return account


def _reconcile_bars(
    past: Past, counts: ArchiveCounts, bounds_ms: tuple[int, int]
) -> BarAccount:
    """Compare the bar log with an archive, a day at a time."""
    from archive.account import BarKey, Edition, account_for_bars, days_of
    from archive.contract.segment import Coverage, day_of, span_of

    first_ms, last_ms = bounds_ms
    # The log first: of a bar that is stored meanwhile nothing is missing.
    log = [
        batch
        for batch in past.bar_batches()
        if all(first_ms <= bar.end_ms <= last_ms for bar in batch.bars)
    ]
    ends: defaultdict[date, list[int]] = defaultdict(list)
    for batch in log:
        for bar in batch.bars:
            ends[day_of(bar.end_ms)].append(bar.end_ms)
    segments = counts.segments("bars")
    stored: dict[BarKey, Edition] = {}
    kept = {}
    for day in days_of(segments):
        of_day = span_of(day)
        if of_day[1] < first_ms or last_ms < of_day[0]:
            continue
        for width_ms, count in counts.bar_counts(*of_day).items():
            kept[day, width_ms] = count
        if day in ends:
            stored |= counts.bars(min(ends[day]), max(ends[day]))
    gaps = counts.gaps("bars", first_ms, last_ms)
    return account_for_bars(log, Coverage(segments), stored, kept, gaps)


def _look(
    past: Past,
    source: LogEntries,
    jobs: list[str],
    receipts: Mapping[str, Receipt] | None,
    is_whole: bool,
    others: bool,
) -> Reconciliation:
    """Reconcile; look again at a difference while a job goes on meanwhile."""
    from throttle.audit.reconcile import marks
    from throttle.audit.reconcile import reconcile as compare

    for _ in range(_LOOKS):
        ledgers = _ledgers(past, jobs)
        of_jobs = {p for ledger in ledgers for p in ledger.upto.partitions}
        every = set(range(source.info.partitions)) if is_whole else set()
        known = (receipts or {}).values()
        counts = source.count(marks(ledgers, known, sorted(of_jobs | every)))
        found = compare(ledgers, counts, receipts, has_others=others)
        if found.is_right or _ledgers(past, jobs) == ledgers:
            break
    return found


def _ledgers(past: Past, jobs: list[str]) -> list[Ledger]:
    ledgers = [past.history.ledger(job) for job in jobs]
    for job, ledger in zip(jobs, ledgers, strict=True):
        if ledger is None:
            fail(f"job {job}: has no ledger")
    return [ledger for ledger in ledgers if ledger is not None]


def _receipts(paths: list[Path], info: LogInfo) -> dict[str, Receipt]:
    """Read receipts of a log. Raises BadArgument."""
    from ingest.feed.receipt import InvalidReceipt, read_receipt

    receipts = {}
    for path in paths:
        try:
            receipt = read_receipt(path.read_bytes())
        except (OSError, InvalidReceipt) as error:
            raise BadArgument(f"acknowledged {path}: {error}") from None
        if receipt.log_id != info.log_id:
            raise BadArgument(
                f"acknowledged {path}: is of the log {receipt.log_id}, "
                f"this one is {info.log_id}"
            )
        receipts[str(path)] = receipt
    return receipts


def reconciliation_object(
    info: LogInfo,
    found: Reconciliation,
    kept: WindowAccount | None = None,
    bars: BarAccount | None = None,
) -> dict[str, Any]:
    """Return a reconciliation for JSON; with that of the archive, if there is one."""
    of_archive = {}
    if kept is not None:
        days = [{"day": str(d), **asdict(counts)} for d, counts in kept.days.items()]
        of_archive["archive"] = account_object(kept, days)
        of_archive["archive"]["partitions"] = [
            {"day": str(day), "partition": partition, **asdict(counts)}
            for (day, partition), counts in kept.partitions.items()
        ]
    if bars is not None:
        days = [
            {"day": str(day), "width_ms": width_ms, **asdict(counts)}
            for (day, width_ms), counts in bars.days.items()
        ]
        of_archive["bars"] = account_object(bars, days)
    accounts = (found, kept, bars)
    return {
        "log": info.log_id,
        "right": all(account is None or account.is_right for account in accounts),
        **of_archive,
        "partitions": [
            {"partition": a.partition, "job": a.job, **_figures_object(a)}
            for a in found.accounts
        ],
        "totals": {name: _figures_object(one) for name, one in found.totals().items()},
        "problems": found.problems,
        "notes": found.notes,
    }


def print_reconciliation(info: LogInfo, found: Reconciliation) -> None:
    """Print a reconciliation, and whether everything is where it should be."""
    typer.echo(f"log {info.log_id}, {info.partitions} partitions")
    accounts = [(str(a.partition), a.job or "-", a) for a in found.accounts]
    accounts += [(name, "", account) for name, account in found.totals().items()]
    rows = [(name, job, _figures(account)) for name, job, account in accounts]
    hidden = {"blanks", "not_last", *_DECODED}
    hidden -= {name for *_, figures in rows for name in figures if figures[name]}
    if not hidden >= _DECODED:
        hidden -= _DECODED
    if all(account.acknowledged is None for account in found.accounts):
        hidden.add("acknowledged")
    numbers = [name for name in rows[0][2] if name not in hidden]
    print_table(
        ["partition", "job", *(f"{number}#" for number in numbers)],
        [
            (name, job, *(_cell(figures[number]) for number in numbers))
            for name, job, figures in rows
        ],
    )
    for sentence in (*found.notes, *found.problems):
        typer.echo(sentence)
    typer.echo("every trade is accounted for" if found.is_right else "not right")


def _figures_object(account: PartitionReading) -> dict[str, Any]:
    books = account.books
    by_name = {"refused": dict(books.refused), "skipped": dict(books.skipped)}
    return {**_figures(account), **by_name}


def _figures(account: PartitionReading) -> dict[str, int | None]:
    books = account.books
    return {
        "acknowledged": account.acknowledged,
        "held": account.held,
        "trimmed": account.trimmed,
        "read": books.read,
        "blanks": books.blanks,
        "extra": books.extra,
        "skipped": sum(books.skipped.values()),
        "published": books.published,
        "superseded": books.superseded,
        "stale": books.stale,
        "not_last": books.not_last,
        "refused": sum(books.refused.values()),
        "waiting": account.waiting,
    }


def _cell(number: int | None) -> str:
    return "?" if number is None else f"{number:,}"


def account_object(
    account: Account[Any, Any], days: list[dict[str, Any]]
) -> dict[str, Any]:
    told = {"problems": account.problems, "notes": account.notes}
    return {"right": account.is_right, "days": days, **told}


def print_account(account: WindowAccount) -> None:
    """Print an account, and whether all is stored that should be."""
    typer.echo("archive, by day: of the windows in the log, then all that is kept")
    columns = ["day", "windows#", "stored#", "waiting#", "rows#", "rows stored#"]
    print_table(
        [*columns, "all windows#", "all rows#"],
        [
            (str(day), *(f"{number:,}" for number in astuple(counts)))
            for day, counts in account.days.items()
        ],
    )
    if account.partitions:
        typer.echo("topic of rows, by day and partition: all that is kept")
        print_table(
            ["day", "partition#", "windows#", "rows#"],
            [
                (str(day), partition, *(f"{number:,}" for number in astuple(counts)))
                for (day, partition), counts in account.partitions.items()
            ],
        )
    for sentence in (*account.notes, *account.problems):
        typer.echo(sentence)
    typer.echo(
        "every window is stored" if account.is_right else "the archive is not right"
    )


def print_bar_account(account: BarAccount) -> None:
    typer.echo("bars, by day and width: of those in the log, then all that are kept")
    print_table(
        ["day", "width ms#", "bars#", "stored#", "waiting#", "all bars#"],
        [
            (str(day), width_ms, *astuple(counts))
            for (day, width_ms), counts in account.days.items()
        ],
    )
    for sentence in (*account.notes, *account.problems):
        typer.echo(sentence)
    typer.echo("every bar is stored" if account.is_right else "bars are missing")
