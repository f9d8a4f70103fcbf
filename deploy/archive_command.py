"""The command that keeps what was published, or shows what is kept."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated

import typer

from archive.settings import ArchiveSettings
from deploy.commands.entry import fail, stop_on_signal
from deploy.commands.setting_options import AsJson, options_of
from deploy.commands.tables import print_json, print_table
from deploy.logs import configure_logs

if TYPE_CHECKING:
    from archive.contract.segment import Segment


@options_of(
    ArchiveSettings,
    *("archive_dir", "postgres_url", "archive_flush_s", "archive_bytes"),
    "redis_url",
    archive_dir="--dir",
    postgres_url="--postgres",
    archive_flush_s="--flush",
    archive_bytes="--max-bytes",
)
def archive(
    *,
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="Show what is kept, by day, and every gap; then end."
        ),
    ] = False,
    json: AsJson = False,
    settings: ArchiveSettings,
) -> None:
    """Keep every published window: in Parquet files, or in PostgreSQL.

    Each exactly once, its rows joined with what the issue table said at the moment.
    Killed at any time and started again, it goes on from what it finds stored.
    """
    from archive.archive_process import ArchiveFailed, give_way, run_archive

    if show:
        _show(settings, as_json=json)
        return
    configure_logs(settings)
    give_way()
    try:
        run_archive(settings, stop_on_signal())
    except ArchiveFailed as error:
        fail(str(error))


def _show(settings: ArchiveSettings, *, as_json: bool) -> None:
    from archive.contract.archive_gap import find_gaps
    from archive.contract.segment import day_of

    segments = _segments(settings)
    gaps = find_gaps(segments)
    windows: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    for segment in segments:
        day = day_of(segment.first_ms).isoformat()
        windows[day] += segment.windows
        pieces[day] += 1
    if as_json:
        days = [{"day": d, "windows": windows[d]} for d in sorted(windows)]
        found = [
            {
                "kind": gap.kind,
                "epoch": gap.epoch,
                "windows": gap.windows,
                "after_ms": gap.after_ms,
                "before_ms": gap.before_ms,
            }
            for gap in gaps
        ]
        print_json({"days": days, "gaps": found})
        return
    rows = [(day, windows[day], pieces[day]) for day in sorted(windows)]
    print_table(["day", "windows#", "segments#"], rows)
    for gap in gaps:
        typer.echo(gap.text)
    if not gaps:
        typer.echo("no gap")


def _segments(settings: ArchiveSettings) -> list[Segment]:
    if not settings.postgres_url:
        from archive.parquet.archive_reader import ArchiveReader

        return ArchiveReader(settings.archive_dir).segments()
    from archive.archiver import SinkRefused
    from archive.postgres.postgres_counts import PostgresCounts

    try:
        return PostgresCounts(settings.postgres_url).segments()
    except SinkRefused as error:
        fail(str(error))
