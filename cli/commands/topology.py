"""The command that describes the pipeline as it would run."""

from typing import Annotated

import typer

from cli.commands.entry import failing_on, read_settings
from cli.commands.setting_options import WITH_JOB
from throttle.settings import ThrottleSettings


@WITH_JOB
def topology(
    *,
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add Spark's physical plan; starts Spark."),
    ] = False,
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="Add what optimised steps cost with and without it, over made-up "
            "trades; starts Spark, for a minute.",
        ),
    ] = False,
    settings: ThrottleSettings,
) -> None:
    """Describe the pipeline as it would run with the settings in force.

    The log, the rules, the stages, every key and channel, every setting; the queries of
    the analytics job with their windows and states; the archive. Taken from the code
    itself; without Redis it shows what is configured.
    """
    import redis

    from archive.describe import archive_parts
    from archive.settings import ArchiveSettings
    from ingest.tradelog.contract import LogAway, LogUnusable
    from throttle.audit.log_entries import open_log_entries
    from throttle.describe.sub_topology import analytics_parts
    from throttle.describe.topology import to_mermaid, to_text
    from throttle.lease.retry import create_client
    from throttle.settings import AnalyticsSettings

    try:
        with create_client(settings.redis_url) as client:
            entries = open_log_entries(client, settings.namespace, settings.topic())
            info = None if entries is None else entries.info
    except (redis.RedisError, LogAway, LogUnusable):
        info = None
    same = {"redis_url": settings.redis_url, "namespace": settings.namespace}
    analytics = read_settings(AnalyticsSettings, **same)
    parts = list(analytics_parts(analytics))
    archive = list(archive_parts(read_settings(ArchiveSettings, **same)))
    if mermaid:
        queries = [part for part in parts if part.name in analytics.products()]
        typer.echo(to_mermaid(settings, info, queries, archive[0]))
    else:
        typer.echo(to_text(settings, info, *parts, *archive))
    mark = "%% " if mermaid else ""
    if explain:
        from throttle.describe.physical_plan import ExplainFailed
        from throttle.describe.physical_plan import explain as explain_batch

        with failing_on(ExplainFailed):
            plans = explain_batch(settings)
        for name, plan in plans.items():
            _print_more(f"Physical plan of {name}\n{plan}", mark)
    if compare:
        from throttle.describe.comparison import CompareFailed, to_table
        from throttle.describe.comparison import compare as run_ways

        with failing_on(CompareFailed):
            table = to_table(run_ways(settings))
        _print_more(table, mark)


def _print_more(text: str, mark: str) -> None:
    """Print lines after an empty one, each with what makes it a comment."""
    typer.echo()
    for line in text.splitlines():
        typer.echo(mark + line)
