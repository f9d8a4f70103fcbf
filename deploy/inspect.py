"""The commands that look and change nothing: books, windows, trades, the pipeline."""

from typing import Annotated

import typer

from deploy.entry import (
    KafkaServers,
    KafkaTopicName,
    LogOption,
    RedisUrl,
    fail,
    read_settings,
)

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
    from deploy.reading import check_number, open_past
    from deploy.show import print_json

    with open_past(job=job, redis_url=redis_url) as past:
        if batches is not None:
            check_number("batches", batches)
        name = past.settings.job
        found = past.history.ledger(name)
        recorded = past.history.batches(name, batches) if batches else []
    if found is None:
        if json:
            print_json({"job": name, "ledger": None})
        else:
            typer.echo(f"no ledger yet: no job {name} has run on this stream")
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
    from deploy.reading import check_issue, check_number, open_past
    from deploy.show import print_json
    from gateway.frames import window_object

    with open_past(redis_url=redis_url) as past:
        check_number("limit", limit)
        check_issue(isin)
        first_ms, last_ms = parse_moment("from", from_), parse_moment("to", to)
        found = some(
            past.history.windows(first_ms, last_ms, isin, newest_first=from_ is None),
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
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Show trades of the log, or refused ones, the newest last.

    A position is printed as <partition>:<position>; the same trade has the same one in
    the log and among the dead letters.
    """
    from deploy import pick, show_past
    from deploy.arguments import parse_moment_or_place
    from deploy.reading import check_issue, check_number, open_past
    from deploy.show import print_json
    from throttle.decoder import find_decoder
    from throttle.rebuild import Rule

    with open_past(
        job=job,
        log=log,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
        redis_url=redis_url,
    ) as past:
        check_number("limit", limit)
        check_issue(isin)
        start = parse_moment_or_place("from", from_)
        wanted = pick.Wanted(start, partition, isin, reason, limit)
        settings, source = past.settings, past.log()
        decoder = find_decoder(settings.decoder)
        if dead:
            letters = pick.pick_letters(past.history, source, settings.job, wanted)
        else:
            rule = Rule(settings.window_ms, settings.max_ahead_ms, decoder)
            entries = pick.pick_trades(source, wanted, rule)
    if dead and json:
        for letter in letters:
            print_json(show_past.letter_object(letter))
    elif dead:
        show_past.print_letters(letters)
    elif json:
        for entry in entries:
            is_decoded = decoder is not None
            print_json(show_past.trade_object(*entry, is_decoded=is_decoded))
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
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Compute past windows again from the trade log, and compare.

    In plain Python, trade by trade, without Spark. Windows whose trades are no longer
    in the log are counted as not comparable. Ends with 1 on any difference.
    """
    from deploy import pick, show_books
    from deploy.arguments import parse_moment_or_place
    from deploy.reading import open_past
    from deploy.show import print_json
    from throttle.decoder import find_decoder
    from throttle.history import Remaining
    from throttle.rebuild import Rule
    from throttle.recheck import Comparison

    with open_past(
        job=job,
        log=log,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
        redis_url=redis_url,
    ) as past:
        first = parse_moment_or_place("from", from_)
        last = parse_moment_or_place("to", to)
        settings, history = past.settings, past.history
        name = settings.job
        source, window_ms = past.log_read_by(name), history.window_ms()
        if window_ms is None:
            fail(f"job {name}: nothing has been published yet")
        decoder = find_decoder(settings.decoder)
        rule = Rule(window_ms, settings.max_ahead_ms, decoder)
        batches, when = history.batches(name), source.append_ms
        first_ms = pick.window_end("from", first, batches, rule, when) or 0
        last_ms = pick.window_end("to", last, batches, rule, when) or _END_OF_TIME_MS
        before = history.published_before()
        remains = Remaining(history, source)
        comparison = Comparison(batches, remains, rule, first_ms, last_ms)
        report = comparison.run(history.windows(), before)
    if json:
        print_json(show_books.report_object(name, report))
    else:
        show_books.print_report(name, report)
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
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Describe the pipeline as it would run with the settings in force.

    The log, the rules, the stages, every key and channel, every setting. Taken from
    the code itself; without Redis it tells what is configured.
    """
    import redis

    from ingest.log import LogAway, LogUnusable
    from throttle.chart import to_mermaid, to_text
    from throttle.explain import ExplainFailed
    from throttle.explain import explain as explain_batch
    from throttle.log_past import open_past
    from throttle.outage import create_client
    from throttle.settings import ThrottleSettings
    from throttle.topology import describe

    settings = read_settings(
        ThrottleSettings,
        job=job,
        log=log,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
        redis_url=redis_url,
    )
    try:
        with create_client(settings.redis_url) as client:
            found = open_past(client, settings)
            info = None if found is None else found.info
    except (redis.RedisError, LogAway, LogUnusable):
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
