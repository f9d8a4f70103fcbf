"""The commands that look and change nothing: books, windows, trades, the pipeline."""

from typing import Annotated

import typer

from deploy.entry import RedisUrl, fail, read_settings

_END_OF_TIME_MS = 2**53

Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line, for programs.")
]
Job = Annotated[
    str | None, typer.Option(help="The throttle job's name. [default: throttle]")
]
Limit = Annotated[int, typer.Option(help="How many at most.")]
From = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Begin here: a time as in ISO 8601, UTC unless it says otherwise, or "
        "milliseconds since 1970. Without it the newest are shown.",
    ),
]
FromPlace = Annotated[
    str | None,
    typer.Option(
        "--from",
        help="Begin here: a time (ISO 8601 or milliseconds), or the position of a "
        "trade as `trades` prints it, <partition>:<position>.",
    ),
]
Isin = Annotated[str | None, typer.Option(help="Only this issue.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the program."""
    for command in (ledger, windows, trades, rebuild, topology):
        app.command()(command)


def ledger(
    job: Job = None,
    batches: Annotated[
        int | None, typer.Option(help="Show so many of the newest batches, too.")
    ] = None,
    json: Json = False,
    redis_url: RedisUrl = None,
) -> None:
    """Show what became of every trade, and whether the books balance.

    Read = published + superseded + stale + refused, and what was read is what the log
    itself counted. Ends with 1 if it does not balance.
    """
    from deploy import show_books
    from deploy.reading import check_number, open_history
    from deploy.show import print_json

    with open_history(job, redis_url) as (history, settings):
        if batches is not None:
            check_number("batches", batches)
        found = history.ledger(settings.job)
        recorded = history.batches(settings.job, batches) if batches else []
    if found is None:
        if json:
            print_json({"job": settings.job, "ledger": None})
        else:
            typer.echo(f"no ledger yet: no job {settings.job} has run on this stream")
        return
    if json:
        batch_objects = [show_books.batch_object(batch) for batch in recorded]
        newest = {"newest_batches": batch_objects} if batches else {}
        print_json({**show_books.ledger_object(found), **newest})
    else:
        show_books.print_ledger(found)
        if batches:
            show_books.print_batches(recorded)
    raise typer.Exit(1 if found.problems() else 0)


def windows(
    from_: From = None,
    to: Annotated[
        str | None, typer.Option(help="End here; a window is named by its end.")
    ] = None,
    limit: Limit = 20,
    rows: Annotated[
        bool, typer.Option("--rows", help="Show the rows, not only their number.")
    ] = False,
    isin: Isin = None,
    json: Json = False,
    redis_url: RedisUrl = None,
) -> None:
    """Show past windows of the window log, the newest last.

    With an issue: the windows in which it changed, and its row in each.
    """
    from deploy import show_past
    from deploy.arguments import parse_moment
    from deploy.pick import some
    from deploy.reading import check_issue, check_number, open_history
    from deploy.show import print_json
    from gateway.frames import window_object

    with open_history(None, redis_url) as (history, _):
        check_number("limit", limit)
        check_issue(isin)
        first_ms, last_ms = parse_moment("from", from_), parse_moment("to", to)
        found = some(
            history.windows(first_ms, last_ms, isin, newest_first=from_ is None),
            limit,
            newest_first=from_ is None,
        )
    with_rows = rows or isin is not None
    if json:
        for window in found:
            print_json(window_object(window, with_rows=with_rows))
    else:
        show_past.print_windows(found, with_rows=with_rows)


def trades(
    dead: Annotated[
        bool, typer.Option("--dead", help="Show refused trades, from dead letters.")
    ] = False,
    from_: FromPlace = None,
    partition: Annotated[
        int | None, typer.Option(help="Only this partition of the log.")
    ] = None,
    isin: Isin = None,
    reason: Annotated[
        str | None, typer.Option(help="Only those refused for this reason.")
    ] = None,
    limit: Limit = 20,
    job: Job = None,
    json: Json = False,
    redis_url: RedisUrl = None,
) -> None:
    """Show trades of the log, or refused ones, the newest last.

    A position is printed as <partition>:<position>; the same trade has the same one in
    the log and among the dead letters.
    """
    from deploy import pick, show_past
    from deploy.arguments import parse_moment_or_place
    from deploy.reading import check_issue, check_number, log_of, open_history
    from deploy.show import print_json
    from throttle.rebuild import Rule

    with open_history(job, redis_url) as (history, settings):
        check_number("limit", limit)
        check_issue(isin)
        start = parse_moment_or_place("from", from_)
        wanted = pick.Wanted(start, partition, isin, reason, limit)
        count = log_of(history).partitions
        if dead:
            letters = pick.pick_letters(history, settings.job, wanted, count)
        else:
            rule = Rule(settings.window_ms, settings.max_ahead_ms)
            entries = pick.pick_trades(history, wanted, count, rule)
    if dead and json:
        for letter in letters:
            print_json(show_past.letter_object(letter))
    elif dead:
        show_past.print_letters(letters)
    elif json:
        for entry in entries:
            print_json(show_past.trade_object(*entry))
    else:
        show_past.print_trades(entries)


def rebuild(
    from_: FromPlace = None,
    to: Annotated[
        str | None,
        typer.Option(help="End here: a time, or the position of a trade."),
    ] = None,
    job: Job = None,
    json: Json = False,
    redis_url: RedisUrl = None,
) -> None:
    """Compute past windows again from the trade log, and compare.

    In plain Python, trade by trade, without Spark. Windows whose trades are no longer
    in the log are counted as not comparable. Ends with 1 on any difference.
    """
    from deploy import pick, show_books
    from deploy.arguments import parse_moment_or_place
    from deploy.reading import log_read_by, open_history
    from deploy.show import print_json
    from throttle.rebuild import Rule
    from throttle.recheck import Comparison

    with open_history(job, redis_url) as (history, settings):
        first = parse_moment_or_place("from", from_)
        last = parse_moment_or_place("to", to)
        info, window_ms = log_read_by(history, settings.job), history.window_ms()
        if window_ms is None:
            fail(f"job {settings.job}: nothing has been published yet")
        rule = Rule(window_ms, settings.max_ahead_ms)
        batches = history.batches(settings.job)
        first_ms = pick.window_end("from", first, batches, rule) or 0
        last_ms = pick.window_end("to", last, batches, rule) or _END_OF_TIME_MS
        remains = history.remains(info)
        before = history.published_before()
        comparison = Comparison(batches, remains, rule, first_ms, last_ms)
        report = comparison.run(history.windows(), before)
    if json:
        print_json(show_books.report_object(settings.job, report))
    else:
        show_books.print_report(settings.job, report)
    raise typer.Exit(0 if report.is_right else 1)


def topology(
    mermaid: Annotated[
        bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Add Spark's physical plan; starts Spark."),
    ] = False,
    job: Job = None,
    redis_url: RedisUrl = None,
) -> None:
    """Describe the pipeline as it would run with the settings in force.

    The log, the rules, the stages, every key and channel, every setting. Taken from
    the code itself; without Redis it tells what is configured.
    """
    import redis

    from throttle.chart import to_mermaid, to_text
    from throttle.explain import ExplainFailed
    from throttle.explain import explain as explain_batch
    from throttle.history import History
    from throttle.outage import create_client
    from throttle.settings import ThrottleSettings
    from throttle.topology import describe

    settings = read_settings(ThrottleSettings, job=job, redis_url=redis_url)
    try:
        with create_client(settings.redis_url) as client:
            info = History(client, settings.namespace).log_info()
    except redis.RedisError:
        info = None
    described = describe(settings, info)
    typer.echo(to_mermaid(described) if mermaid else to_text(described))
    if not explain:
        return
    try:
        plans = explain_batch(settings)
    except ExplainFailed as error:
        fail(str(error))
    mark = "%% " if mermaid else ""
    for name, plan in plans.items():
        typer.echo(f"\n{mark}Physical plan of {name}")
        for line in plan.splitlines():
            typer.echo(f"{mark}{line}")
