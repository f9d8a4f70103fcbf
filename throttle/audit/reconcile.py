"""Is every trade where it should be: acknowledged, logged, read, published? Pure.

What feeds were acknowledged, what the log holds and what the ledgers say come in
as arguments. Four parties count, none of them knows of the others; what cannot be
known any more is said to be that.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ingest.feed.receipt import UNSENT, Receipt
from throttle.contract.ledger import Books, Ledger, add_up, imbalance

Span = tuple[int, int]
"""The position after which something begins, and its last one."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """What the receipts of all feeds say of one partition, together.

    The acknowledged entries lie in ``spans``, which do not overlap and go up. Behind
    ``open_after`` a feed that has not ended may have appended more; None if all have.
    """

    acknowledged: int
    in_doubt: int
    spans: tuple[Span, ...]
    open_after: int | None = None


@dataclass(slots=True)
class EntryCount:
    """A partition that is read from its first mark, or its beginning, to its end.

    ``gone`` is how many entries and blanks it has had before those it still holds, and
    nothing at or before ``gone_upto`` is left. ``counts`` says how many of its
    ``entries`` stand at or before each mark. In a dense log every position is an
    entry or a blank.
    """

    gone: int
    gone_upto: int
    is_dense: bool
    entries: int
    counts: dict[int, int]

    @classmethod
    def begin(
        cls, marks: Iterable[int], gone: int, gone_upto: int, is_dense: bool
    ) -> "EntryCount":
        """Return a count of no entry yet."""
        return cls(gone, gone_upto, is_dense, 0, dict.fromkeys(sorted(marks), 0))

    def add(self, positions: Sequence[int]) -> None:
        """Count some entries by their positions, which go up."""
        self.entries += len(positions)
        for mark in self.counts:
            self.counts[mark] += bisect_right(positions, mark)

    def between(self, after: int, upto: int) -> int:
        """Return the number of entries between two marks."""
        return max(0, self.counts[upto] - self.counts[after])

    def behind(self, after: int) -> int:
        """Return the number of entries behind a mark."""
        return self.entries - self.counts[after]

    def blanks(self, after: int, upto: int) -> int:
        """Return the number of blanks between two marks, of those that are left."""
        left = upto - max(after, self.gone_upto)
        if not self.is_dense or left <= 0:
            return 0
        return left - self.between(after, upto)


@dataclass(frozen=True, slots=True)
class PartitionReading:
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
    """Differences are ``problems``, one sentence each; ``notes`` are none."""

    accounts: list[PartitionReading] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        """Whether there is no difference."""
        return not self.problems

    def totals(self) -> dict[str, PartitionReading]:
        """Return the sums by what they are of; one sum, if none counts twice."""
        accounts = self.accounts
        if len({account.partition for account in accounts}) == len(accounts):
            return {"total": _total(accounts)}
        jobs = dict.fromkeys(a.job for a in accounts if a.job is not None)
        return {
            f"total {job}": _total([a for a in accounts if a.job == job])
            for job in jobs
        }


@dataclass(frozen=True, slots=True)
class _JobReading:
    """What one job has read of a partition, with what is known of its gone entries."""

    name: str
    account: PartitionReading
    since: int
    counted: int | None
    gone_since: int | None
    gone_blanks: int
    missed: int


def marks(
    ledgers: Sequence[Ledger], receipts: Iterable[Receipt], partitions: Iterable[int]
) -> dict[int, set[int]]:
    """Return the positions at which the log's entries have to be counted."""
    all_receipts = list(receipts)
    needed: dict[int, set[int]] = {}
    for p in partitions:
        feeds = acknowledged_in(all_receipts, p)
        edges = {edge for span in feeds.spans for edge in span}
        if feeds.open_after is not None:
            edges.add(feeds.open_after)
        for ledger in ledgers:
            if p in ledger.upto.partitions:
                edges |= {ledger.since.position(p), ledger.upto.position(p)}
        needed[p] = edges
    return needed


def reconcile(
    ledgers: Sequence[Ledger],
    entry_counts: Mapping[int, EntryCount],
    receipts: Mapping[str, Receipt] | None = None,
    *,
    has_others: bool = False,
) -> Reconciliation:
    """Compare what was acknowledged, logged and read, partition by partition.

    ``entry_counts`` were counted after the receipts, by name, and the ledgers were
    read, at their ``marks``. ``has_others`` allows for producers that leave no
    receipts.
    """
    result = Reconciliation()
    for partition, entry_count in entry_counts.items():
        feeds = acknowledged = None
        if receipts is not None:
            feeds = acknowledged_in(receipts.values(), partition)
            acknowledged = feeds.acknowledged
        readings = [
            _read_by(ledger, partition, entry_count, acknowledged)
            for ledger in ledgers
            if partition in ledger.upto.partitions
        ]
        for reading in readings:
            result.accounts.append(reading.account)
            result.problems += _differences(reading)
        if not readings:
            size = entry_count.entries
            result.accounts.append(
                PartitionReading(partition, None, acknowledged, size, 0, Books(), size)
            )
            result.problems.append(
                f"partition {partition}: no job reads it; it holds {size:,} entries"
            )
        if feeds is not None:
            _check_appended(result, partition, feeds, entry_count, readings, has_others)
    for name, receipt in (receipts or {}).items():
        result.notes += _notes_on(name, receipt)
    return result


def _read_by(
    ledger: Ledger, partition: int, entry_count: EntryCount, acknowledged: int | None
) -> _JobReading:
    books = ledger.partitions[ledger.upto.partitions.index(partition)]
    since, upto = ledger.since.position(partition), ledger.upto.position(partition)
    first, last = ledger.since.count(partition), ledger.upto.count(partition)
    # Blanks were counted when they were read; those that are left still can be.
    gone_blanks = max(0, books.blanks - entry_count.blanks(since, upto))
    is_behind = entry_count.gone_upto > upto
    gone_since: int | None = 0
    trimmed: int | None = 0
    missed = 0
    if entry_count.gone_upto <= since:
        gone_blanks = 0
    elif first is None or (last is None and is_behind):
        gone_since = trimmed = None
    else:
        gone_since = entry_count.gone - first
        if last is not None and is_behind:
            missed = max(0, entry_count.gone - last)
        trimmed = max(0, gone_since - missed - gone_blanks)
    return _JobReading(
        f"partition {partition}, job {ledger.job}",
        PartitionReading(
            *(partition, ledger.job, acknowledged, entry_count.behind(since)),
            *(trimmed, books, entry_count.behind(upto)),
        ),
        since,
        None if first is None or last is None else last - first - books.blanks,
        gone_since,
        gone_blanks,
        missed,
    )


def _differences(reading: _JobReading) -> Iterable[str]:
    name, account = reading.name, reading.account
    books, trimmed = account.books, account.trimmed
    left = account.held - account.waiting
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
    yield from imbalance(name, books)
    if reading.counted is not None and reading.counted != books.read:
        yield (
            f"{name}: the log counted {reading.counted:,} entries up to the newest "
            f"cut, {books.read:,} were read"
        )


def _check_appended(
    result: Reconciliation,
    partition: int,
    feeds: Acknowledged,
    entry_count: EntryCount,
    readings: Sequence[_JobReading],
    has_others: bool,
) -> None:
    name, sure, doubt = f"partition {partition}", feeds.acknowledged, feeds.in_doubt
    held = sum(entry_count.between(*span) for span in feeds.spans)
    fewest, gone = _gone_from(feeds.spans, entry_count, readings)
    least, most = held + fewest, held + gone
    later = _later(feeds, entry_count, fewest)
    if sure > most:
        result.problems.append(
            f"{name}: {sure:,} trades were acknowledged, the log has had {most:,} "
            f"where they should be: {sure - most:,} are missing"
        )
    elif least > sure + doubt + later:
        others = result.notes if has_others else result.problems
        others.append(
            f"{name}: {least - sure - doubt - later:,} entries of other producers are "
            "among those acknowledged; no receipt accounts for them"
        )
    elif least > sure + doubt:
        result.notes.append(
            f"{name}: {least - sure:,} entries more than acknowledged: feeds that have "
            "not ended may have appended them since"
        )
    elif least > sure:
        result.notes.append(
            f"{name}: {least - sure:,} entries more than acknowledged, of {doubt:,} "
            "that were in doubt"
        )
    elif sure < most:
        result.notes.append(
            f"{name}: {sure:,} trades were acknowledged, the log has had {least:,} to "
            f"{most:,} where they should be: some are trimmed and cannot be told apart"
        )
    if entry_count.entries > held:
        result.notes.append(
            f"{name}: {entry_count.entries - held:,} entries lie outside of what the "
            "receipts cover"
        )


def _later(feeds: Acknowledged, entry_count: EntryCount, gone: int) -> int:
    """Return how many entries feeds may have appended since they told of any."""
    begin, between = feeds.open_after, entry_count.between
    if begin is None:
        return 0
    held = sum(between(max(after, begin), upto) for after, upto in feeds.spans)
    return held + (gone if entry_count.gone_upto > begin else 0)


def _gone_from(
    spans: Sequence[Span], entry_count: EntryCount, readings: Sequence[_JobReading]
) -> tuple[int, int]:
    """Return how many entries may be gone from some spans, at least and at most."""
    if not spans or entry_count.gone_upto <= spans[0][0]:
        return 0, 0
    older = [reading for reading in readings if reading.since <= spans[0][0]]
    if entry_count.is_dense:
        end = entry_count.gone_upto
        gone = sum(max(0, min(upto, end) - after) for after, upto in spans)
        blanks = min((reading.gone_blanks for reading in older), default=gone)
        return max(0, gone - blanks), gone
    counts = [r.gone_since for r in older if r.gone_since is not None]
    return 0, min(counts, default=entry_count.gone)


def _notes_on(name: str, receipt: Receipt) -> Iterable[str]:
    if not receipt.ended:
        yield f"{name}: the feed runs or was killed; it may have appended more since"
    for reason, count in receipt.refused.items():
        if reason == UNSENT:
            yield f"{name}: the feed ended before it had sent {count:,} trades"
        else:
            yield f"{name}: the log refused {count:,} trades, {reason}"
    if receipt.dropped_at_cap:
        yield (
            f"{name}: the feed dropped {receipt.dropped_at_cap:,} entries to keep the "
            "log within its cap"
        )


def _total(accounts: Sequence[PartitionReading]) -> PartitionReading:
    acknowledged = [a.acknowledged for a in accounts if a.acknowledged is not None]
    trimmed = [a.trimmed for a in accounts if a.trimmed is not None]
    return PartitionReading(
        partition=-1,
        job=None,
        acknowledged=sum(acknowledged) if acknowledged else None,
        held=sum(a.held for a in accounts),
        trimmed=sum(trimmed) if len(trimmed) == len(accounts) else None,
        books=add_up(a.books for a in accounts),
        waiting=sum(a.waiting for a in accounts),
    )


def acknowledged_in(receipts: Iterable[Receipt], partition: int) -> Acknowledged:
    """Return what receipts say of a partition."""
    acknowledged = in_doubt = 0
    spans: list[Span] = []
    # What running feeds have told last; None of one that had appended nothing yet.
    newest: list[int | None] = []
    for receipt in receipts:
        if partition < len(receipt.partitions):
            tally = receipt.partitions[partition]
            acknowledged += tally.acknowledged
            in_doubt += tally.in_doubt
            if tally.first is not None and tally.last is not None:
                spans.append((tally.first - 1, tally.last))
            if not receipt.ended:
                newest.append(tally.last)
    merged = _merged(spans)
    open_after = None
    if newest and merged:
        first = merged[0][0]
        open_after = min(first if last is None else last for last in newest)
    return Acknowledged(acknowledged, in_doubt, merged, open_after)


def _merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for after, upto in sorted(spans):
        if merged and after <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(upto, merged[-1][1])
        else:
            merged.append((after, upto))
    return tuple(merged)
