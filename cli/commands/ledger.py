"""The command that shows what became of every trade."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.commands.arguments import check_number, format_moment
from cli.commands.setting_options import WITH_JOB, AsJson
from cli.commands.tables import print_json, print_table
from throttle.settings import ThrottleSettings
from tickthrottle_client.log_v1 import LogError

if TYPE_CHECKING:
    from throttle.contract.ledger import BatchEntry, Books, Ledger


_ALWAYS = {"read", "published", "superseded", "stale"}
"""Columns of every ledger; others are there where they have a number."""

_TAKEN_BACK = {"taken back", "unknown target"}

_ONE_TRANSACTION_S = 1.0
"""A transaction that is open for so long holds others up."""


@WITH_JOB
def ledger(
    *,
    batches: Annotated[
        int | None, typer.Option(help="Show this many of the newest batches, too.")
    ] = None,
    json: AsJson = False,
    settings: ThrottleSettings,
) -> None:
    """Show what became of every trade, and whether the books balance.

    Read = published + superseded + stale + not last + refused, and what was read is
    what the log itself counted; volume and value of the trades add up likewise. Ends
    with 1 if it does not balance.
    """
    from cli.commands.open_history import open_past

    with open_past(settings) as past:
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
    waiting = _waiting(settings)
    if json:
        batch_objects = [batch_object(batch) for batch in recorded]
        newest = {"newest_batches": batch_objects} if batches else {}
        print_json({**ledger_object(found), **newest, "waiting": waiting})
    else:
        print_ledger(found)
        for line in waiting:
            typer.echo(line)
        if batches:
            print_batches(recorded)
    raise typer.Exit(1 if found.problems() else 0)


def _waiting(settings: ThrottleSettings) -> list[str]:
    """Say which partitions of Kafka wait behind a transaction, and have for a second.

    What waits there is in no book yet, and the books balance without it.
    """
    try:
        if (topic := settings.topic()) is None:
            return []
        # Loaded where it is needed only.
        from ingest.kafka.ends import KafkaEnds

        ends = KafkaEnds(topic)
        _, before = ends.look()
        if not any(end.waiting for end in before.values()):
            return []
        time.sleep(_ONE_TRANSACTION_S)
        _, after = ends.look()
    except LogError as error:
        return [f"whether anything waits in the topic is not known: {error}"]
    return [
        f"partition {p} of {topic.topic}: {end.waiting:,} offsets wait behind a "
        f"transaction that is open at offset {end.position + 1}"
        for p, end in sorted(after.items())
        if end.waiting and p in before and end.position == before[p].position
    ]


def ledger_object(ledger: Ledger) -> dict[str, Any]:
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
    from throttle.contract.ledger import AMOUNTS, OUTCOMES

    since, upto = ledger.since.end_ms, ledger.upto.end_ms
    typer.echo(
        f"job {ledger.job}, from {format_moment(since)} up to the window "
        f"{format_moment(upto)}: {ledger.windows} windows in {ledger.batches} batches"
    )
    total = ledger.total
    lines = [(str(p), books, log) for p, books, log in _partitions(ledger)]
    lines.append(("total", total, _sum(ledger.log)))
    names = [name for name, count in _cells(total, total).items() if count]
    shown = {*_ALWAYS, *names}
    if shown & _TAKEN_BACK:
        shown |= _TAKEN_BACK
    columns = [name for name in _cells(total, total) if name in shown]
    print_table(
        ["partition", *(f"{name}#" for name in columns), "log#"],
        [
            (
                name,
                *map(_cells(books, total).__getitem__, columns),
                "?" if log is None else log,
            )
            for name, books, log in lines
        ],
    )
    amounts = total.to_object()
    for amount, of in ((name, amounts[name]) for name in AMOUNTS):
        read, *became = (
            f"{of[name]} {name.replace('_', ' ')}"
            for name in OUTCOMES
            if total.not_last or name != "not_last"
        )
        typer.echo(f"{amount}: {read} = {' + '.join(became)}")
    for line in ledger.problems() or ["balanced"]:
        typer.echo(line)


def _cells(books: Books, total: Books) -> dict[str, int]:
    """Return what became of trades, by column: with every reason that ``total`` has."""
    return {
        "read": books.read,
        "extra": books.extra,
        "published": books.published,
        "superseded": books.superseded,
        "stale": books.stale,
        "not last": books.not_last,
        **{reason: books.refused.get(reason, 0) for reason in total.refused},
        **{f"skipped: {n}": books.skipped.get(n, 0) for n in total.skipped},
        "unkept": books.unkept,
        "unknown instrument": books.unknown_instrument,
        "taken back": books.taken_back,
        "unknown target": books.unknown_target,
        "blanks": books.blanks,
    }


def batch_object(batch: BatchEntry) -> dict[str, Any]:
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
    not_last = ["not last#"] if any(b.total.not_last for b in batches) else []
    print_table(
        [
            *("offset#", "up to the window", "windows#", "term#", "batch#"),
            *("read#", "published#", "superseded#", "stale#", *not_last, "refused#"),
        ],
        [
            (
                *(batch.offset, format_moment(batch.end.end_ms), batch.windows),
                *(batch.term, batch.batch),
                *(batch.total.read, batch.total.published),
                *(batch.total.superseded, batch.total.stale),
                *(batch.total.not_last for _ in not_last),
                sum(batch.total.refused.values()),
            )
            for batch in batches
        ],
    )


def _partitions(ledger: Ledger) -> Iterator[tuple[int, Books, int | None]]:
    return zip(ledger.upto.partitions, ledger.partitions, ledger.log, strict=True)


def _sum(counted: Iterable[int | None]) -> int | None:
    known = list(counted)
    return None if None in known else sum(n for n in known if n is not None)
