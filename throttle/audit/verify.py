"""Was published what had to be? A job's windows and books against the trade log. Pure.

The one recomputation: ``tickthrottle rebuild`` and the load test ask it. What a job
must have published between two cuts is computed anew from the log's entries
(``recompute.py``) and compared with the window log, row by row, with the recorded
batches and with the ledger:

    log = open_log_entries(client, namespace, topic)        # Redis or Kafka
    history = PublishedHistory(client, namespace)
    before = history.versions_before()
    verification = Verification(history.batches(job), log, WindowRule(2_000, 5_000))
    report = verification.run(history.windows(), before, history.oldest_offset)
    report.problems += ledger_problems(ledger_then, ledger_now, report)

Whoever has followed the stream from a cut on hands in what it has: the batches, the
windows and the versions published before them. Nothing is kept but the report.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from typing import Protocol

from ingest.instrument_table.known_instruments import Instruments
from ingest.tradelog.contract import Ranges
from throttle.audit.compare import (
    Difference,
    Kind,
    PublishedVersions,
    compare_books,
    judge,
    judge_groups,
)
from throttle.audit.recompute import (
    ComputedRow,
    Entry,
    RecomputedBatch,
    WindowRule,
    recompute,
)
from throttle.audit.standing_again import NOTHING_TAKEN, StandingLog, TakenAgain
from throttle.contract.cut import between
from throttle.contract.ledger import BatchEntry, Books, Ledger, add_up
from throttle.contract.snapshot import WindowSnapshot
from throttle.contract.trade_order import NO_VERSION

SHOWN = 20
"""How many differences are kept in full; all of them are counted."""

TRIMMED_LOG = "their trades are no longer in the log"
TRIMMED_BATCHES = "their batch is no longer recorded"
TRIMMED_WINDOWS = "no longer in the window log"


END_OF_TIME_MS = 2**53


class EntriesLeft(Protocol):
    """What is left of the trade log (``LogEntries``)."""

    def between(self, ranges: Ranges) -> Iterable[Entry]:
        """Return the entries of some ranges that are left."""

    def fronts(self, partitions: Iterable[int]) -> Mapping[int, Entry | None]:
        """Return the oldest entry left in each partition, None where there is none."""


TableAt = Callable[[int, str], Instruments | None]
"""Returns the instrument table at a version and of a digest, None if it is gone."""


@dataclass(slots=True)
class VerificationReport:
    """What a verification found; ``differences`` holds the first ones only.

    ``not_comparable`` counts windows by the reason; ``others`` counts windows that
    are in no recorded batch of this job, though windows before and after them are.
    ``undecided`` rows restate, and nobody knows whether they say what was shown, or
    whether there have to be any.
    ``books`` is what became of the trades by the log, as far as it is left.
    ``first_news_ms`` says by offset, for each row in its order, when the first trade
    that was news entered the log; NaN where none was or that is not known. It is kept
    if asked for.
    ``groups`` is how many groups of markets and sectors were compared; ``gone_tables``
    counts the windows whose groups were not, by the version of the instrument table
    that is gone.
    """

    compared: int = 0
    equal: int = 0
    rows: int = 0
    instruments: set[str] = field(default_factory=set)
    books: Books = field(default_factory=Books)
    counts: Counter[Kind] = field(default_factory=Counter)
    undecided: int = 0
    not_comparable: Counter[str] = field(default_factory=Counter)
    others: int = 0
    differences: list[Difference] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    first_news_ms: "dict[int, array[float]]" = field(default_factory=dict)
    groups: int = 0
    gone_tables: Counter[int] = field(default_factory=Counter)

    @property
    def is_right(self) -> bool:
        """Whether something was compared and no difference was found."""
        return self.compared > 0 and not self.counts and not self.problems


def gaps(batches: Sequence[BatchEntry]) -> list[str]:
    """Say in one sentence each where a batch does not begin where the last ended."""
    return [
        f"batch {after.offset} begins at the cut {after.start.to_offset()}, "
        f"the one before it ended at {before.end.to_offset()}"
        for before, after in pairwise(batches)
        if before.end != after.start
    ]


def ledger_problems(
    before: Ledger, after: Ledger, report: VerificationReport
) -> list[str]:
    """Say in one sentence each where books moved otherwise than the log says.

    The report is of all windows between the two readings. Where some were not
    comparable, nobody knows how the books should have moved.
    """
    if report.not_comparable or report.undecided:
        return []
    moved, books = after.total.since(before.total), report.books
    figures = [
        ("windows", after.windows - before.windows, report.compared),
        ("entries read", moved.read, books.read),
        ("trades beside others in an entry", moved.extra, books.extra),
        ("entries skipped", sum(moved.skipped.values()), sum(books.skipped.values())),
        ("trades published", moved.published, books.published),
        ("trades superseded", moved.superseded, books.superseded),
        ("trades stale", moved.stale, books.stale),
        ("trades not last", moved.not_last, books.not_last),
        ("trades taken back", moved.taken_back, books.taken_back),
        ("entries of an unknown target", moved.unknown_target, books.unknown_target),
    ]
    for reason in sorted({*moved.refused, *books.refused}):
        counts = moved.refused.get(reason, 0), books.refused.get(reason, 0)
        figures.append((f"trades refused as {reason}", *counts))
    return [
        f"books: {booked} {name}, by the log {counted}"
        for name, booked, counted in figures
        if booked != counted
    ]


@dataclass(frozen=True, slots=True)
class _Again:
    """A batch computed again, and how much of its log was left to do so.

    ``lost`` are the partitions that are not complete any more. Windows that start
    after ``lost_ms`` have all their trades nevertheless; None: no window has.
    ``instruments`` is the instrument table it was joined with, None if that is gone.
    ``taken`` is what it takes back, which its last window restates.
    """

    made: RecomputedBatch
    lost: frozenset[int]
    lost_ms: int | None
    instruments: Instruments | None
    taken: TakenAgain


class Verification:
    """Goes through a job's published windows once, oldest first.

    Only windows that end in ``[first_ms, last_ms]`` are judged; from the others it
    learns what had been published.
    """

    def __init__(
        self,
        batches: Sequence[BatchEntry],
        log: EntriesLeft,
        rule: WindowRule,
        first_ms: int = 0,
        last_ms: int = END_OF_TIME_MS,
        keeps_first_news: bool = False,
        table_at: TableAt | None = None,
    ) -> None:
        self._table_at = table_at
        self._log = log
        self._rule = rule
        self._standing = StandingLog(log.between, rule, batches)
        self._first_ms, self._last_ms = first_ms, last_ms
        self._keeps_first_news = keeps_first_news
        self._batch_of = {
            batch.offset - back: batch
            for batch in batches
            for back in range(batch.windows)
        }
        self._again: dict[int, _Again] = {}
        self._report = VerificationReport(problems=gaps(batches))

    def run(
        self,
        snapshots: Iterable[WindowSnapshot],
        before: PublishedVersions,
        oldest_offset: Callable[[], int | None],
    ) -> VerificationReport:
        """Compare all; ``before`` is what had been published until the first.

        ``oldest_offset`` tells that of the oldest window left, None if none is.
        """
        unseen = set(self._batch_of)
        for snapshot in snapshots:
            unseen.discard(snapshot.offset)
            self._look_at(snapshot, before)
            before.learn(snapshot.rows)
        # After the windows: what was trimmed while they were read is not missing.
        oldest = oldest_offset()
        for offset in sorted(unseen):
            end_ms = self._end_of(offset)
            if not self._first_ms <= end_ms <= self._last_ms:
                continue
            if oldest is None or offset < oldest:
                self._report.not_comparable[TRIMMED_WINDOWS] += 1
            else:
                self._report.problems.append(
                    f"offset {offset}: the window {end_ms} is missing from "
                    "the window log"
                )
        return self._report

    def _look_at(self, snapshot: WindowSnapshot, before: PublishedVersions) -> None:
        batch, report = self._batch_of.get(snapshot.offset), self._report
        if batch is None:
            self._note_unclaimed(snapshot)
            return
        end_ms = self._end_of(snapshot.offset)
        if not self._first_ms <= end_ms <= self._last_ms:
            return
        if snapshot.window != end_ms:
            report.problems.append(
                f"offset {snapshot.offset}: published is the window {snapshot.window}, "
                f"its batch was cut for {end_ms}"
            )
            return
        again = self._compute(batch)
        if not self._is_complete(end_ms, batch, again):
            report.not_comparable[TRIMMED_LOG] += 1
            return
        computed = again.made.windows.get(end_ms, {})
        restated = again.taken.rows if end_ms == batch.end.end_ms else {}
        verdict = judge(snapshot, computed, before, restated)
        if again.instruments is None:
            report.gone_tables[batch.end.instruments] += 1
        else:
            report.groups += len(snapshot.groups)
            report.problems += judge_groups(
                snapshot, batch, computed, again.instruments, verdict.restating
            )
        report.compared += 1
        report.rows += len(snapshot.rows)
        report.instruments.update(computed)
        restating = verdict.restating
        # Trades that are not for the last price were counted with the batch, and those
        # that are shown again with another one.
        others = {isin for isin, one in restated.items() if not one.is_own}
        no_news = restating | others
        outcome = Books(
            published=sum(row.isin not in no_news for row in snapshot.rows),
            stale=sum(
                computed[i].row.version != NO_VERSION for i in restating - others
            ),
        )
        report.books = add_up([report.books, outcome])
        report.undecided += verdict.undecided
        report.equal += not verdict.differences and not verdict.undecided
        report.counts.update(difference.kind for difference in verdict.differences)
        room = SHOWN - len(report.differences)
        report.differences += verdict.differences[:room]
        if self._keeps_first_news:
            news_ms = _first_news_ms(snapshot, computed, before)
            report.first_news_ms[snapshot.offset] = news_ms

    def _compute(self, batch: BatchEntry) -> _Again:
        """Compute a batch again, once for all of its windows."""
        if batch.offset not in self._again:
            self._again.clear()
            partitions = batch.end.partitions
            entries = self._log.between(between(batch.start, batch.end, partitions))
            instruments = self._table_of(batch)
            cuts_ms = batch.start.end_ms, batch.end.end_ms
            made = recompute(entries, *cuts_ms, self._rule)
            taken = self._take_back(batch, made)
            # After the entries: what was trimmed while they were read is lost, too.
            fronts = self._log.fronts(partitions)
            lost = frozenset(
                p for p, front in fronts.items() if _is_lost(batch, made, p, front)
            )
            # Up to where something is lost; None if all is.
            left = [front.append_ms for p in lost if (front := fronts[p]) is not None]
            lost_ms = max(left) if lost and len(left) == len(lost) else None
            found, booked = taken[1:], batch.total
            # It took back what cannot be found any more, or did not find what is there,
            # because it would have had to read too much.
            if found[0] < booked.taken_back or found[1] < booked.unknown_target:
                lost, lost_ms = frozenset(partitions), None
            self._again[batch.offset] = _Again(made, lost, lost_ms, instruments, taken)
            self._report.problems += compare_books(batch, made, lost, instruments)
            self._report.books = add_up([self._report.books, made.books()])
        return self._again[batch.offset]

    def _take_back(self, batch: BatchEntry, made: RecomputedBatch) -> TakenAgain:
        """Return what a batch takes back; count it in what was made."""
        if not made.taking_back:
            return NOTHING_TAKEN
        computed = made.windows.get(batch.end.end_ms, {})
        taken = self._standing.taken_by(batch, made.taking_back, computed)
        for isin, restated in taken.rows.items():
            shown = computed.get(isin)
            if shown is not None and shown.row.version != NO_VERSION:
                made.superseded[shown.partition] += 1
            if restated.is_own:
                made.superseded[restated.partition] -= 1
        made.taken_back, made.unknown_target = taken[1:]
        return taken

    def _table_of(self, batch: BatchEntry) -> Instruments | None:
        if not batch.end.instruments:
            return Instruments()
        if self._table_at is None:
            return None
        return self._table_at(batch.end.instruments, batch.instruments_digest)

    def _is_complete(self, end_ms: int, batch: BatchEntry, again: _Again) -> bool:
        if not again.lost:
            return True
        start_ms = end_ms - self._rule.window_ms
        # Trimmed are the oldest ones; a straggler is in the batch's first window.
        is_first = start_ms <= batch.start.end_ms
        return not is_first and again.lost_ms is not None and start_ms > again.lost_ms

    def _note_unclaimed(self, snapshot: WindowSnapshot) -> None:
        claimed = self._batch_of
        if not claimed or not self._first_ms <= snapshot.window <= self._last_ms:
            return
        # Beyond the newest batch: published since the batches were read.
        if snapshot.offset < min(claimed):
            self._report.not_comparable[TRIMMED_BATCHES] += 1
        elif snapshot.offset < max(claimed):
            self._report.others += 1

    def _end_of(self, offset: int) -> int:
        batch = self._batch_of[offset]
        return batch.end.end_ms - (batch.offset - offset) * self._rule.window_ms


def _is_lost(
    batch: BatchEntry, made: RecomputedBatch, partition: int, front: Entry | None
) -> bool:
    """Tell whether a partition may have lost entries of a batch to trimming."""
    # Only the oldest are trimmed: an entry left from before the batch proves that all
    # of the batch are, too, and so does finding as many as there were.
    if front is not None and front.position <= batch.start.position(partition):
        return False
    books = batch.partitions[batch.end.partitions.index(partition)]
    first, last = batch.start.count(partition), batch.end.count(partition)
    there_were = books.read
    if first is not None and last is not None:
        there_were = last - first - books.blanks
    return made.read[partition] < there_were


def _first_news_ms(
    snapshot: WindowSnapshot,
    computed: Mapping[str, ComputedRow],
    before: PublishedVersions,
) -> "array[float]":
    times = array("d")
    for row in snapshot.rows:
        time_ms = None
        if row.isin in computed and before.is_news(row) is not None:
            time_ms = computed[row.isin].first_news_ms(before.newest(row.isin))
        times.append(nan if time_ms is None else time_ms)
    return times
