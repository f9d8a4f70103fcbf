"""The command that keeps what was published, or shows what is kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Annotated

import typer

from archive.settings import ArchiveSettings
from cli.commands.entry import fail, failing_on, stop_on_signal
from cli.commands.setting_options import AsJson, options_of
from cli.commands.tables import print_json, print_table
from cli.logs import configure_logs
from tickthrottle_client.log_v1 import LogError


@options_of(
    ArchiveSettings,
    *("archive_dir", "postgres_url", "archive_topics", "kafka_servers"),
    "redis_url",
    archive_dir="--dir",
    postgres_url="--postgres",
    archive_topics="--topics",
    archive_format="--format",
    schema_registry_url="--schema-registry",
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
    """Keep every window, bar and trading status: in files, in PostgreSQL, or in topics.

    Each exactly once, rows joined with what the instrument table said at the moment.
    Killed at any time and started again, it goes on from what it finds stored.
    """
    from archive.archive_process import ArchiveFailed, give_way, run_archive

    if show:
        _show(settings, as_json=json)
        return
    configure_logs(settings)
    give_way()
    with failing_on(ArchiveFailed):
        run_archive(settings, stop_on_signal())


def _show(settings: ArchiveSettings, *, as_json: bool) -> None:
    from archive.archive_process import open_counts
    from archive.contract.segment import day_of

    windows: Counter[str] = Counter()
    pieces: Counter[str] = Counter()
    bars: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    try:
        counts = open_counts(settings)
        # First: what is damaged is a gap from then on.
        damage = counts.damage()
        for segment in counts.segments():
            # A segment is of one day, in files and in a database.
            day_name = day_of(segment.first_ms).isoformat()
            windows[day_name] += segment.windows
            pieces[day_name] += 1
        for day, lines in counts.bar_lines().items():
            bars[day.isoformat()] = lines
        if "statuses" in counts.keeps:
            for segment in counts.segments("statuses"):
                statuses[day_of(segment.first_ms).isoformat()] += segment.windows
        gaps = [gap for product in counts.keeps for gap in counts.gaps(product)]
    except (OSError, LogError) as error:
        fail(f"archive: {error}")
    names = sorted({*windows, *bars, *statuses})
    if as_json:
        days = [
            {
                "day": day,
                "windows": windows[day],
                "bars": bars[day],
                "statuses": statuses[day],
            }
            for day in names
        ]
        missing = [asdict(gap) for gap in gaps]
        print_json({"days": days, "gaps": missing, "damaged": damage})
        return
    rows = [(day, windows[day], pieces[day], bars[day], statuses[day]) for day in names]
    print_table(["day", "windows#", "segments#", "bars#", "statuses#"], rows)
    for gap in gaps:
        typer.echo(gap.text)
    for words in damage:
        typer.echo(f"damaged: {words}")
    if not gaps:
        typer.echo("no gap")
