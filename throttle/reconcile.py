"""Whether every trade is where it should be: acknowledged, logged, read, published.

Pure: what feeds were acknowledged, what the log holds and what the ledgers say come in
as arguments. Four parties count, none of them knows of the others; what cannot be
known any more is said to be that.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.receipt import Receipt
from throttle.appended import Appended, Span, appended
from throttle.ledger import Books, Ledger, add_up
from throttle.stock import Stock


@dataclass(frozen=True, slots=True)
class Line:
    """One partition as one job has read it; ``job`` is None if none reads it.

    ``held`` counts the entries behind the job's first cut that are left, ``waiting``
    those of them behind its newest one. ``trimmed`` were read and are gone, None if
    nobody knows how many. Without receipts nobody knows what was ``acknowledged``.
    """

    partition: int
    job: str | None
    acknowledged: int | None
    held: int
    trimmed: int | None
    books: Books
    waiting: int


@dataclass(slots=True)
class Reconciliation:
    """What was found: ``problems`` are the differences, in one sentence each.

    ``notes`` are what is worth knowing and no difference.
    """

    lines: list[Line] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether every identity holds."""
        return not self.problems

    def totals(self) -> dict[str, Line]:
        """Return the sums by what they are of; one sum, if none counts twice."""
        if len({line.partition for line in self.lines}) == len(self.lines):
            return {"total": _total(self.lines)}
        jobs = dict.fromkeys(line.job for line in self.lines if line.job is not None)
        return {
            f"total {job}": _total([one for one in self.lines if one.job == job])
            for job in jobs
        }


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one job has read of a partition, beside what that holds."""

    name: str
    since: int
    counted: int | None
    books: Books
    held: int
    waiting: int
    trimmed: int | None
    gone_since: int | None
    gone_blanks: int
    missed: int


def marks(
    ledgers: Sequence[Ledger], receipts: Iterable[Receipt], partitions: Iterable[int]
) -> dict[int, set[int]]:
    """Return the positions at which the log's entries have to be counted."""
    every = list(receipts)
    needed: dict[int, set[int]] = {}
    for p in partitions:
        given = appended(every, p)
        edges = {edge for span in given.spans for edge in span}
        edges |= set() if given.open_after is None else {given.open_after}
        for ledger in ledgers:
            if p in ledger.upto.partitions:
                edges |= {ledger.since.position(p), ledger.upto.position(p)}
        needed[p] = edges
    return needed


def reconcile(
    ledgers: Sequence[Ledger],
    stocks: Mapping[int, Stock],
    receipts: Mapping[str, Receipt] | None = None,
    *,
    has_others: bool = False,
) -> Reconciliation:
    """Compare what was acknowledged, logged and read, partition by partition.

    ``stocks`` were counted after the receipts, by name, and the ledgers were read, at
    their ``marks``. ``has_others`` allows for producers that leave no receipts.
    """
    found = Reconciliation()
    for partition, stock in stocks.items():
        given = None if receipts is None else appended(receipts.values(), partition)
        acknowledged = None if given is None else given.acknowledged
        readings = []
        for ledger in ledgers:
            if partition in ledger.upto.partitions:
                reading = _read_by(ledger, partition, stock)
                readings.append(reading)
                found.lines.append(
                    Line(
                        *(partition, ledger.job, acknowledged, reading.held),
                        *(reading.trimmed, reading.books, reading.waiting),
                    )
                )
                found.problems += _differences(reading)
        if not readings:
            count = stock.entries
            found.lines.append(
                Line(partition, None, acknowledged, count, 0, Books(), count)
            )
            found.problems.append(
                f"partition {partition}: no job reads it; it holds {count:,} entries"
            )
        if given is not None:
            _check_appended(found, partition, given, stock, readings, has_others)
    for name, receipt in (receipts or {}).items():
        found.notes += _notes_on(name, receipt)
    return found


def _read_by(ledger: Ledger, partition: int, stock: Stock) -> _Reading:
    books = ledger.partitions[ledger.upto.partitions.index(partition)]
    since, upto = ledger.since.position(partition), ledger.upto.position(partition)
    first, last = ledger.since.count(partition), ledger.upto.count(partition)
    # Blanks were counted when they were read; those that are left still can be.
    gone_blanks = max(0, books.blanks - stock.blanks(since, upto))
    gone_since: int | None
    if stock.gone_upto <= since:
        gone_since = gone_read = gone_blanks = missed = 0
    elif first is None or (last is None and stock.gone_upto > upto):
        gone_since = gone_read = None
        missed = 0
    else:
        gone_since = stock.gone - first
        missed = 0
        if last is not None and stock.gone_upto > upto:
            missed = max(0, stock.gone - last)
        gone_read = gone_since - missed
    return _Reading(
        name=f"partition {partition}, job {ledger.job}",
        since=since,
        counted=None if first is None or last is None else last - first - books.blanks,
        books=books,
        held=stock.behind(since),
        waiting=stock.behind(upto),
        trimmed=None if gone_read is None else max(0, gone_read - gone_blanks),
        gone_since=gone_since,
        gone_blanks=gone_blanks,
        missed=missed,
    )


def _differences(reading: _Reading) -> Iterable[str]:
    name, books, trimmed = reading.name, reading.books, reading.trimmed
    left = reading.held - reading.waiting
    if trimmed is None:
        yield f"{name}: nobody knows how many entries were trimmed since its first cut"
    elif left + trimmed != books.read:
        yield (
            f"{name}: the log holds {left:,} entries up to the newest cut and "
            f"{trimmed:,} were trimmed, {books.read:,} were read"
        )
    if reading.missed:
        yield (
            f"{name}: {reading.missed:,} entries behind the newest cut were deleted "
            "before they were read"
        )
    if books.read != books.accounted:
        yield (
            f"{name}: {books.read:,} trades were read, {books.accounted:,} are "
            "accounted for"
        )
    if reading.counted is not None and reading.counted != books.read:
        yield (
            f"{name}: the log counted {reading.counted:,} entries up to the newest "
            f"cut, {books.read:,} were read"
        )


def _check_appended(
    found: Reconciliation,
    partition: int,
    given: Appended,
    stock: Stock,
    readings: Sequence[_Reading],
    has_others: bool,
) -> None:
    name, sure, doubt = f"partition {partition}", given.acknowledged, given.in_doubt
    held = sum(stock.between(*span) for span in given.spans)
    fewest, gone = _gone_from(given.spans, stock, readings)
    least, most = held + fewest, held + gone
    later = _later(given, stock, fewest)
    if sure > most:
        found.problems.append(
            f"{name}: {sure:,} trades were acknowledged, the log has had {most:,} "
            f"where they should be: {sure - most:,} are missing"
        )
    elif least > sure + doubt + later:
        others = found.notes if has_others else found.problems
        others.append(
            f"{name}: {least - sure - doubt - later:,} entries of other producers are "
            "among those acknowledged; no receipt accounts for them"
        )
    elif least > sure + doubt:
        found.notes.append(
            f"{name}: {least - sure:,} entries more than acknowledged: feeds that have "
            "not ended may have appended them since"
        )
    elif least > sure:
        found.notes.append(
            f"{name}: {least - sure:,} entries more than acknowledged, of {doubt:,} "
            "that were in doubt"
        )
    elif sure < most:
        found.notes.append(
            f"{name}: {sure:,} trades were acknowledged, the log has had {least:,} to "
            f"{most:,} where they should be: some are trimmed and cannot be told apart"
        )
    if stock.entries > held:
        found.notes.append(
            f"{name}: {stock.entries - held:,} entries stand outside of what the "
            "receipts tell of"
        )


def _later(given: Appended, stock: Stock, gone: int) -> int:
    """Return how many entries feeds may have appended since they told of any."""
    begin = given.open_after
    if begin is None:
        return 0
    held = sum(stock.between(max(after, begin), upto) for after, upto in given.spans)
    return held + (gone if stock.gone_upto > begin else 0)


def _gone_from(
    spans: Sequence[Span], stock: Stock, readings: Sequence[_Reading]
) -> tuple[int, int]:
    """Return how many entries may be gone from some spans, at least and at most."""
    if not spans or stock.gone_upto <= spans[0][0]:
        return 0, 0
    older = [reading for reading in readings if reading.since <= spans[0][0]]
    if stock.is_dense:
        gone = sum(max(0, min(upto, stock.gone_upto) - after) for after, upto in spans)
        blanks = min((reading.gone_blanks for reading in older), default=gone)
        return max(0, gone - blanks), gone
    known = [r.gone_since for r in older if r.gone_since is not None]
    return 0, min(known, default=stock.gone)


def _notes_on(name: str, receipt: Receipt) -> Iterable[str]:
    if not receipt.ended:
        yield f"{name}: the feed runs or was killed; it may have appended more since"
    for reason, count in receipt.refused.items():
        yield f"{name}: the log refused {count:,} trades, {reason}"
    if receipt.dropped_at_cap:
        yield (
            f"{name}: the feed dropped {receipt.dropped_at_cap:,} entries to keep the "
            "log within its cap"
        )


def _total(lines: Sequence[Line]) -> Line:
    acknowledged = [one.acknowledged for one in lines if one.acknowledged is not None]
    trimmed = [one.trimmed for one in lines if one.trimmed is not None]
    return Line(
        partition=-1,
        job=None,
        acknowledged=sum(acknowledged) if acknowledged else None,
        held=sum(one.held for one in lines),
        trimmed=sum(trimmed) if len(trimmed) == len(lines) else None,
        books=add_up(one.books for one in lines),
        waiting=sum(one.waiting for one in lines),
    )
