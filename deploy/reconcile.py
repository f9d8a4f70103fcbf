"""The command that compares what feeds, log and ledgers have counted."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.entry import KafkaServers, KafkaTopicName, LogOption, RedisUrl, fail
from deploy.inspect import Json

if TYPE_CHECKING:
    from deploy.reading import Past
    from ingest.log import LogInfo
    from ingest.receipt import Receipt
    from throttle.ledger import Ledger
    from throttle.log_past import LogPast
    from throttle.reconcile import Reconciliation

_LOOKS = 5


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    app.command()(reconcile)


def reconcile(
    acknowledged: Annotated[
        list[Path] | None,
        typer.Option(
            help="What a feed was acknowledged: the file it kept with --report. May be "
            "given several times, for several feeds."
        ),
    ] = None,
    others: Annotated[
        bool,
        typer.Option(
            "--others", help="Allow for producers that have left no such file."
        ),
    ] = False,
    job: Annotated[
        str | None,
        typer.Option(help="Only this job. [default: all that have read this log]"),
    ] = None,
    json: Json = False,
    log: LogOption = None,
    kafka_servers: KafkaServers = None,
    kafka_topic: KafkaTopicName = None,
    redis_url: RedisUrl = None,
) -> None:
    """Compare what was acknowledged, what the log holds, and what became of it.

    Counted anew, by reading the log, per partition: acknowledged = held, held +
    trimmed = read, read = published + superseded + stale + refused. Ends with 1 on any
    difference. What waits to be read is none.
    """
    from deploy import show_reconcile
    from deploy.reading import open_past
    from deploy.show import print_json

    with open_past(
        job=job,
        log=log,
        kafka_servers=kafka_servers,
        kafka_topic=kafka_topic,
        redis_url=redis_url,
    ) as past:
        if job is None:
            source = past.log()
            jobs = past.jobs_of(source.info)
        else:
            source, jobs = past.log_read_by(job), [job]
        receipts = _receipts(acknowledged, source.info) if acknowledged else None
        is_whole = job is None
        found = _look(past, source, jobs, receipts, is_whole, others)
    if json:
        print_json(show_reconcile.reconciliation_object(source.info, found))
    else:
        show_reconcile.print_reconciliation(source.info, found)
    raise typer.Exit(0 if found.is_right else 1)


def _look(
    past: "Past",
    source: "LogPast",
    jobs: list[str],
    receipts: "Mapping[str, Receipt] | None",
    is_whole: bool,
    others: bool,
) -> "Reconciliation":
    """Reconcile; look again at a difference while a job goes on meanwhile."""
    from throttle.reconcile import marks
    from throttle.reconcile import reconcile as compare

    for _ in range(_LOOKS):
        ledgers = _ledgers(past, jobs)
        of_jobs = {p for ledger in ledgers for p in ledger.upto.partitions}
        every = set(range(source.info.partitions)) if is_whole else set()
        known = (receipts or {}).values()
        stocks = source.stock(marks(ledgers, known, sorted(of_jobs | every)))
        found = compare(ledgers, stocks, receipts, has_others=others)
        if found.is_right or _ledgers(past, jobs) == ledgers:
            break
    return found


def _ledgers(past: "Past", jobs: list[str]) -> "list[Ledger]":
    ledgers = [past.history.ledger(job) for job in jobs]
    for job, ledger in zip(jobs, ledgers, strict=True):
        if ledger is None:
            fail(f"job {job}: has no ledger")
    return [ledger for ledger in ledgers if ledger is not None]


def _receipts(paths: list[Path], info: "LogInfo") -> "dict[str, Receipt]":
    """Read receipts of a log. Raises BadArgument."""
    from deploy.arguments import BadArgument
    from ingest.receipt import InvalidReceipt, Receipt

    receipts = {}
    for path in paths:
        try:
            receipt = Receipt.decode(path.read_bytes())
        except (OSError, InvalidReceipt) as error:
            raise BadArgument(f"acknowledged {path}: {error}") from None
        if receipt.log_id != info.log_id:
            raise BadArgument(
                f"acknowledged {path}: is of the log {receipt.log_id}, "
                f"this one is {info.log_id}"
            )
        receipts[str(path)] = receipt
    return receipts
